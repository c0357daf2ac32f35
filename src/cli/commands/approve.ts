import type { Verb } from '../verb.ts'
import { giveVerdict } from '../verdict.ts'

export const verb: Verb = {
  name: 'approve',
  group: 'People',
  summary: 'let a held command be carried out, or a parked conversation go on',
  arguments: [{ name: 'ID' }],
  options: [{ name: 'comment', value: 'TEXT', summary: 'told to the asker' }],
  examples: ['orc approve req_3', 'orc approve req_3 --comment "go ahead, but slowly"'],
  run(invocation) {
    const comment = invocation.option('comment')
    return giveVerdict(invocation, invocation.words[0]!, {
      decision: 'approve',
      ...(comment === undefined ? {} : { comment }),
    })
  },
}
