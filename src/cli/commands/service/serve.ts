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
    'orc.yaml is read again when it changes; with mistakes in it, the rules before them stay in force.\n' +
    'Ctrl-C, SIGTERM and SIGHUP end it properly, with exit code 0. Agents in terminals go on, and are found again at\n' +
    'the next start; `orc down` stops them too.',
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
      farewell: 'Ctrl-C stops it; agents in terminals go on. `orc down` stops them too.',
    }),
}
