import { setTimeout as wait } from 'node:timers/promises'
import { AppError } from '../../../base/errors.ts'
import { isRunning } from '../../../base/process.ts'
import { openClientIfRunning } from '../../connection/client.ts'
import { print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'

/** Longer than any agent takes to stop. */
const PATIENCE_MS = 60_000
const LOOK_AGAIN_MS = 50

export const verb: Verb = {
  name: 'down',
  summary: 'stop the service and the team; orc up continues the conversations',
  options: [{ name: 'keep-agents', summary: 'stop only the service; agents in terminals keep running' }],
  details: '`orc service halt` stops all work but keeps the service running.',
  examples: ['orc down', 'orc down --keep-agents'],
  async run({ location, flag, json }) {
    const agents = flag('keep-agents') ? 'leave' : 'end'
    const client = await openClientIfRunning(location)
    if (client === undefined) {
      if (json) printJson({ status: 'not running' })
      else print('The service is not running.')
      return 0
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
    if (json) printJson({ status: 'stopped', pid, agents })
    else
      print(
        agents === 'end'
          ? 'Stopped the service and the team.'
          : 'Stopped the service; the agents keep running.',
      )
    return 0
  },
}
