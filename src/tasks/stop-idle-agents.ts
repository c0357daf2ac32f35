import type { Sessions } from '../agents/sessions.ts'
import type { Log } from '../base/log.ts'
import type { Team } from '../commands/team.ts'
import { countQueued } from '../messages/deliveries.ts'
import type { Store } from '../store/store.ts'
import { clearTimer, setTimer } from '../store/timer-rows.ts'
import type { Timers } from '../store/timers.ts'
import { hasOpenTask, reviewsOf } from './store/tasks.ts'
import type { TaskState } from './task.ts'

interface IdleStopOptions {
  store: Store
  timers: Timers
  log: Log
  team(): Team
  sessions(): Sessions
}

/** States in which the worker has something to do. */
const AT_WORK: readonly TaskState[] = ['pending', 'analyzing', 'executing']

/** Stops agents that were idle for `stop_when_idle` of orc.yaml. Their conversations are kept. */
export function createIdleStop({ store, timers, log, team, sessions }: IdleStopOptions) {
  const limitOf = (agent: string) => team().config.agents.find(({ name }) => name === agent)?.stopWhenIdleMs

  timers.on('stop_idle', async (tx, agent) => {
    const ms = limitOf(agent)
    if (ms === undefined || sessions().session(agent)?.state !== 'idle') return
    const isAtWork = await hasOpenTask(tx, agent, AT_WORK)
    const isAwaited = isAtWork || (await reviewsOf(tx, agent)).length > 0
    if (isAwaited || (await countQueued(tx, agent, 1)) > 0) {
      await setTimer(tx, 'stop_idle', agent, tx.now + ms)
      tx.afterCommit(() => timers.setFor(tx.now + ms))
      return
    }
    tx.afterCommit(() => {
      sessions()
        .stop(agent)
        .catch((error: unknown) => log.error({ agent, err: error }, 'could not stop an idle agent'))
    })
  })

  return {
    async began(agent: string) {
      if (limitOf(agent) === undefined) return
      await store.write((tx) => clearTimer(tx, 'stop_idle', agent))
    },
    async rests(agent: string) {
      const ms = limitOf(agent)
      if (ms === undefined) return
      await store.write(async (tx) => {
        await clearTimer(tx, 'stop_idle', agent)
        await setTimer(tx, 'stop_idle', agent, tx.now + ms)
        tx.afterCommit(() => timers.setFor(tx.now + ms))
      })
    },
  }
}
