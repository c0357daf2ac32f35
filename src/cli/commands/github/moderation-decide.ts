import { openClient } from '../../connection/client.ts'
import { print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'

const DECISIONS = ['upheld', 'dismissed'] as const

export const verb: Verb = {
  name: 'moderation decide',
  group: 'People',
  summary: 'decide on a flag about conduct, as a moderator; nobody else hears of it',
  details: 'Nothing is done on GitHub by it: what follows for a person, people do themselves.',
  arguments: [{ name: 'ID' }, { name: 'DECISION', choices: DECISIONS }],
  options: [{ name: 'comment', value: 'TEXT', summary: 'why, for other moderators' }],
  examples: [
    'orc moderation decide 1f0c… dismissed',
    'orc moderation decide 1f0c… upheld --comment "spoken to"',
  ],
  async run({ place, words, option, json }) {
    const comment = option('comment')
    const answer = await (await openClient(place)).closeModeration(words[0]!, {
      decision: words[1] as (typeof DECISIONS)[number],
      ...(comment === undefined ? {} : { comment }),
    })
    if (json) printJson({ id: words[0], decision: words[1], ...answer })
    else print(`${words[0]} is ${words[1]}.`)
    return 0
  },
}
