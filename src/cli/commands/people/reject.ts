import type { Verb } from '../../verb.ts'
import { giveVerdict } from './decide.ts'

export const verb: Verb = {
  name: 'reject',
  group: 'People',
  summary: 'refuse a held command, or keep a conversation parked',
  arguments: [{ name: 'ID' }],
  options: [{ name: 'comment', value: 'TEXT', summary: 'told to the asker' }],
  examples: ['orc reject req_3', 'orc reject req_3 --comment "not before Monday"'],
  run(invocation) {
    const comment = invocation.option('comment')
    return giveVerdict(invocation, invocation.words[0]!, {
      decision: 'reject',
      ...(comment === undefined ? {} : { comment }),
    })
  },
}
