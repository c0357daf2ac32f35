import { openClient } from '../../connection/client.ts'
import { githubText } from '../../output/github-text.ts'
import { complain, print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'github status',
  summary: 'show the GitHub team: pending work and the health of its agents',
  examples: [
    'orc github status',
    'orc github setup',
    'orc github replay opened.json --event issues --dry-run',
  ],
  async run({ location, json }) {
    const { github } = await (await openClient(location)).state()
    if (json) printJson(github ?? null)
    else if (github === undefined)
      complain('This service has no GitHub team; orc github setup explains how to start.')
    else print(githubText(github))
    return 0
  },
}
