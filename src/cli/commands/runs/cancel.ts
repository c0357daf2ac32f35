import { openClient } from '../../connection/client.ts'
import { print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'run cancel',
  summary: 'cancel a run and stop its active agents; orc run --resume continues it',
  arguments: [{ name: 'RUN' }],
  options: [{ name: 'reason', value: 'TEXT', summary: 'the reason, for the audit log' }],
  examples: ['orc run cancel run_1', 'orc run cancel run_1 --reason "the wrong data"'],
  async run({ location, words, option, json }) {
    const id = words[0]!
    const reason = option('reason')
    const client = await openClient(location)
    const answer = await client.cancelRun(id, reason === undefined ? {} : { reason })
    if (json) printJson(answer)
    else print(answer.cancelled ? `${id} is being cancelled.` : `${id} has already ended.`)
    return 0
  },
}
