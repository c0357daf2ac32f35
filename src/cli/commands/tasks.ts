import { openClient } from '../connect.ts'
import { complain, paint, print, printJson } from '../output.ts'
import { taskTree } from '../task-text.ts'
import type { Verb } from '../verb.ts'

export const verb: Verb = {
  name: 'tasks',
  group: 'Look',
  summary: 'what was delegated to whom and how far it is, as a tree',
  options: [
    { name: 'all', summary: 'ended ones as well' },
    { name: 'limit', value: 'N', summary: 'at most so many, the newest (default: 200)' },
  ],
  examples: ['orc tasks', 'orc tasks --all --limit 20'],
  async run({ place, flag, option, json }) {
    const client = await openClient(place)
    const limit = option('limit')
    const { tasks } = await client.tasks({
      state: flag('all') ? 'all' : 'open',
      ...(limit === undefined ? {} : { limit }),
    })
    if (json) for (const task of tasks) printJson(task)
    else if (tasks.length > 0) print(taskTree(tasks))
    else complain(paint('dim', 'No task is open.', 'err'))
    return 0
  },
}
