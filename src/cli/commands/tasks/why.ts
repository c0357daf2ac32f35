import { openClient } from '../../connection/client.ts'
import { complain, paint, print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'
import { whyTree } from './task-text.ts'

export const verb: Verb = {
  name: 'why',
  summary: 'explain what a task is waiting for, on whom and since when',
  arguments: [{ name: 'ID' }],
  examples: ['orc why task_7'],
  async run({ location, words, json }) {
    const client = await openClient(location)
    if (json) {
      const { id, state, waits_for, due, reason } = await client.task(words[0]!)
      printJson({ id, state, waits_for, due, reason })
    } else {
      print(whyTree(await client.trace(words[0]!)))
      const { halted } = await client.health()
      if (halted) complain(paint('yellow', 'Orchub is halted; resume it with `orc go`.', 'err'))
    }
    return 0
  },
}
