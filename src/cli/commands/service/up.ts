import { setTimeout as wait } from 'node:timers/promises'
import { AppError } from '../../../base/errors.ts'
import { isRunning } from '../../../base/process.ts'
import type { Client } from '../../../client/client.ts'
import { openClientIfRunning } from '../../connection/client.ts'
import { openAnswering, startDetached } from '../../connection/start-service.ts'
import { showWorking } from '../../output/layout.ts'
import { print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'
import { runService, SERVICE_OPTIONS } from './serve.ts'
import { showStatus } from './status.ts'

export const verb: Verb = {
  name: 'up',
  summary: 'start the service and the team; agents continue where they were',
  details:
    'Runs in the foreground until Ctrl-C, which also stops the team. If the terminal closes, agents in panes keep running.\n' +
    'With --detach it returns once the agents are ready, after at most 20 seconds; with --json, once the service answers.\n' +
    'When a request needs a person, the terminal rings and shows a notification, unless --quiet or notify: off is set.',
  options: [{ name: 'detach', short: 'd', summary: 'run in the background' }, ...SERVICE_OPTIONS],
  examples: ['orc up', 'orc up --detach', 'orc up -d && orc attach Master'],
  async run(invocation) {
    const { location, flag, json } = invocation
    const running = await openAnswering(location)
    if (running !== undefined) {
      if (!json) print('The service is already running.')
      return await showStatus(running, location, json)
    }
    if (!flag('detach')) {
      return await runService(invocation, {
        agents: 'end',
        lastLine: 'Ctrl-C stops the service and the team. Use --detach to run them in the background.',
      })
    }
    const started = await startDetached(invocation)
    if (json) printJson(started.facts)
    else if (started.isOthers) print('The service is already running.')
    else print(`Started the service (process ${started.facts.pid}); log: ${started.logFile}`)
    if (json) return 0
    await untilReady(started.client)
    return await showStatus(started.client, location, false)
  },
}

/** Agent programs take seconds to start; after this, print the status as it is. */
const READY_MS = 20_000
const READY_AGAIN_MS = 200

async function untilReady(client: Client): Promise<void> {
  const working = showWorking('starting the agents')
  const deadline = Date.now() + READY_MS
  try {
    while (Date.now() < deadline) {
      const { agents } = await client.agents()
      if (!agents.some((agent) => agent.runtime !== 'none' && agent.session === 'initializing')) return
      await wait(READY_AGAIN_MS)
    }
  } finally {
    working.end()
  }
}

/** Longer than any agent takes to stop. */
const PATIENCE_MS = 60_000
const LOOK_AGAIN_MS = 50

export const down: Verb = {
  name: 'down',
  summary: 'stop the service and the team; orc up continues the conversations',
  options: [{ name: 'keep-agents', summary: 'stop only the service; agents in terminals keep running' }],
  details: '`orc service halt` stops all work but keeps the service running.',
  examples: ['orc down', 'orc down --keep-agents'],
  async run({ location, flag, show }) {
    const agents = flag('keep-agents') ? 'leave' : 'end'
    const client = await openClientIfRunning(location)
    if (client === undefined) {
      return show({ status: 'not running' }, () => 'The service is not running.')
    }
    const { pid } = await client.stop(agents)
    const deadline = Date.now() + PATIENCE_MS
    while (isRunning(pid)) {
      if (Date.now() > deadline) {
        throw new AppError('CONFLICT', `The service (process ${pid}) is still stopping`, {
          hint: 'Check again in a moment: orc status.',
        })
      }
      await wait(LOOK_AGAIN_MS)
    }
    return show({ status: 'stopped', pid, agents }, () =>
      agents === 'end'
        ? 'Stopped the service and the team.'
        : 'Stopped the service; the agents keep running.',
    )
  },
}
