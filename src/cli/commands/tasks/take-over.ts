import { sendCommand } from '../../connection/send-command.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'task take-over',
  summary: 'do a task yourself: interrupt its agent and report the result',
  details:
    'The task appears as a request in `orc inbox`. `orc answer ID RESULT` reports the result to the delegator. To return\n' +
    'the task to its agent: `orc task-action --task-id TASK --action follow_up TEXT`.',
  arguments: [{ name: 'TASK' }],
  examples: ['orc task take-over task_7', 'orc task take-over task_7 && orc inbox'],
  run: ({ words, json, location }) =>
    sendCommand('task-action', [
      ...['--task-id', words[0]!, '--action', 'take_over'],
      ...(json ? ['--json'] : []),
      ...(location.configFile === undefined ? [] : ['--config', location.configFile]),
    ]),
}
