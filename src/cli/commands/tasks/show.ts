import { openClient } from '../../connection/client.ts'
import { print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'
import { taskDetail } from './task-detail.ts'

export const verb: Verb = {
  name: 'task show',
  group: 'Look',
  summary: 'one task: its state, its messages, and the evidence that it is done',
  arguments: [{ name: 'ID' }],
  examples: ['orc task show task_7'],
  async run({ place, words, json }) {
    const task = await (await openClient(place)).task(words[0]!)
    if (json) printJson(task)
    else print(taskDetail(task))
    return 0
  },
}
