import type { Option, Verb } from '../../verb.ts'
import { LOG_LEVELS } from './log.ts'
import { runService } from './run-service.ts'

export const SERVICE_OPTIONS: readonly Option[] = [
  { name: 'port', value: 'N', summary: 'listen on this port; 0 picks a free one' },
  { name: 'host', value: 'H', summary: 'listen on this address instead of 127.0.0.1' },
  {
    name: 'log-level',
    value: 'LEVEL',
    summary: `${LOG_LEVELS.join(', ')} (default: info)`,
    choices: LOG_LEVELS,
  },
  { name: 'quiet', summary: 'no bell or notification when a person is asked' },
]

export const verb: Verb = {
  name: 'service serve',
  summary: 'run the service in the foreground; agents in terminals outlive it',
  details:
    'Reloads orc.yaml when it changes; if the new file has mistakes, the previous configuration stays in force.\n' +
    'Ctrl-C, SIGTERM and SIGHUP stop the service with exit code 0. Agents in terminals keep running, and the next start\n' +
    'reconnects to them; `orc down` stops them too.',
  options: [
    ...SERVICE_OPTIONS,
    {
      name: 'for-runs',
      summary: 'start agents on demand and exit after the last run; used by orc run',
    },
  ],
  examples: [
    'orc service serve',
    'orc service serve --config team/orc.yaml --port 0',
    'orc service serve --log-level debug',
  ],
  run: (invocation) =>
    runService(invocation, {
      agents: 'leave',
      farewell: 'Ctrl-C stops the service; agents in terminals keep running. `orc down` stops them too.',
    }),
}
