import { openClient } from '../../connection/client.ts'
import { githubText } from '../../output/github-text.ts'
import { complain, print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'github',
  group: 'Look',
  summary: 'the GitHub team: what waits, and how its agents are',
  examples: ['orc github', 'orc github setup', 'orc github replay opened.json --event issues --dry-run'],
  async run({ place, json }) {
    const { github } = await (await openClient(place)).state()
    if (json) printJson(github ?? null)
    else if (github === undefined)
      complain('This service has no team for GitHub; orc github setup says how to begin.')
    else print(githubText(github))
    return 0
  },
}
