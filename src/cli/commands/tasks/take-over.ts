import { sendCommand } from '../../connection/send-command.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'task take-over',
  summary: 'do a task yourself: interrupt its agent and report the result',
  details:
    'A request in `orc inbox` stands for it. `orc answer ID RESULT` reports the result to whoever delegated it. To give\n' +
    'it back: `orc task-action --task-id TASK --action follow_up TEXT`.',
  arguments: [{ name: 'TASK' }],
  examples: ['orc task take-over task_7', 'orc task take-over task_7 && orc inbox'],
  run: ({ words, json, location }) =>
    sendCommand('task-action', [
      ...['--task-id', words[0]!, '--action', 'take_over'],
      ...(json ? ['--json'] : []),
      ...(location.configFile === undefined ? [] : ['--config', location.configFile]),
    ]),
}
