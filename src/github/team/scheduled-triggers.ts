import type { Tx } from '../../store/store.ts'
import { clearTimer, moveTimer, type TimerRow } from '../../store/timer-rows.ts'
import { nextRun } from '../core/schedule.ts'
import { keepDelivery } from '../store/deliveries.ts'
import type { Trigger } from '../terms.ts'
import type { GithubParts } from './parts.ts'

const KIND = 'github_trigger'
export const PERIODIC = 'periodic_trigger'

/** Stores a scheduled trigger as a delivery. Its id contains the time, so that it is processed once even after a crash. */
export function createTriggers({ store, timers, settings, clock, team }: GithubParts, kick: () => void) {
  timers.on(KIND, async (tx, name) => {
    const trigger = team().config.github?.schedule.find((one) => one.name === name)
    if (trigger === undefined) return
    await keepDelivery(tx, {
      id: `${PERIODIC}-${name}-${tx.now}`,
      event: PERIODIC,
      payload: JSON.stringify({ action: name, repository: { full_name: trigger.repository } }),
    })
    await arm(tx, trigger)
    tx.afterCommit(kick)
  })

  async function arm(tx: Tx, trigger: Trigger) {
    const due = nextRun(trigger, tx.now)
    if (due === undefined) return
    await moveTimer(tx, KIND, trigger.name, due)
    tx.afterCommit(() => timers.setFor(due))
  }

  return {
    /** Arms the timers of orc.yaml. A trigger that came due while the service was down fires once, now. */
    async follow(): Promise<void> {
      await store.write(async (tx) => {
        const rows = await tx.all<TimerRow>('SELECT * FROM timers WHERE kind = ?', [KIND])
        for (const { ref } of rows) {
          if (!settings().schedule.some(({ name }) => name === ref)) await clearTimer(tx, KIND, ref)
        }
        for (const trigger of settings().schedule) {
          const isDue = rows.some(({ ref, due_at }) => ref === trigger.name && due_at <= clock.now())
          if (!isDue) await arm(tx, trigger)
        }
      })
    },
  }
}
