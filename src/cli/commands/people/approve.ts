import type { Verb } from '../../verb.ts'
import { giveVerdict } from './decide.ts'

export const verb: Verb = {
  name: 'approve',
  group: 'People',
  summary: 'let a held command be carried out, a parked conversation go on; accept what a task has come to',
  arguments: [{ name: 'ID' }],
  options: [
    { name: 'comment', value: 'TEXT', summary: 'told to the asker' },
    {
      name: 'hash',
      value: 'HASH',
      summary: 'of the command as you saw it; needed where somebody has changed it since it was asked',
    },
  ],
  examples: ['orc approve req_3', 'orc approve req_3 --comment "go ahead, but slowly"'],
  run(invocation) {
    const comment = invocation.option('comment')
    const hash = invocation.option('hash')
    return giveVerdict(invocation, invocation.words[0]!, {
      decision: 'approve',
      ...(comment === undefined ? {} : { comment }),
      ...(hash === undefined ? {} : { hash }),
    })
  },
}
