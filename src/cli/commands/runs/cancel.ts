import { openClient } from '../../connection/client.ts'
import { print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'run cancel',
  group: 'Plans',
  summary: 'cancel a run: whoever of it works is stopped; orc run --resume takes it up again',
  arguments: [{ name: 'RUN' }],
  options: [{ name: 'reason', value: 'TEXT', summary: 'why, for the record' }],
  examples: ['orc run cancel run_1', 'orc run cancel run_1 --reason "the wrong data"'],
  async run({ place, words, option, json }) {
    const id = words[0]!
    const reason = option('reason')
    const client = await openClient(place)
    const answer = await client.cancelRun(id, reason === undefined ? {} : { reason })
    if (json) printJson(answer)
    else print(answer.cancelled ? `${id} is being cancelled.` : `${id} has ended already.`)
    return 0
  },
}
