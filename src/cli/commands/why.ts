import { openClient } from '../connect.ts'
import { print, printJson } from '../output.ts'
import { whyText } from '../task-text.ts'
import type { Verb } from '../verb.ts'

export const verb: Verb = {
  name: 'why',
  group: 'Look',
  summary: 'what a task waits for, and on whom; or why it ended',
  arguments: [{ name: 'ID' }],
  examples: ['orc why task_7'],
  async run({ place, words, json }) {
    const { id, state, waits_for, due, reason, ...task } = await (await openClient(place)).task(words[0]!)
    if (json) printJson({ id, state, waits_for, due, reason })
    else print(whyText({ ...task, id, state, waits_for, due, reason }))
    return 0
  },
}
