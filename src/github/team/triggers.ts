import type { Tx } from '../../store/store.ts'
import { clearTimer, moveTimer, type TimerRow } from '../../store/timer-rows.ts'
import { nextRun } from '../core/schedule.ts'
import { keepDelivery } from '../store/deliveries.ts'
import type { Trigger } from '../terms.ts'
import type { GithubParts } from './settings.ts'

const KIND = 'github_trigger'
export const PERIODIC = 'periodic_trigger'

/** What begins by the clock comes in like any event, under an id that stands for its time: once, after whatever crash. */
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
    /** One that came due while the service was away comes now, once; the others as orc.yaml has them. */
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
