import { TASK_TIMERS, type Task, type TaskTimer } from '../../model/task.ts'
import type { Tx } from '../../store/store.ts'
import { findTask } from '../../store/tasks.ts'
import { clearTimer, moveTimer } from '../../store/timers.ts'
import { timersOf } from '../../tasks/effect.ts'
import { type Happening, ON_DUE } from '../../tasks/happening.ts'
import type { TaskSettings } from '../../tasks/settings.ts'
import type { Stepped } from '../../tasks/view.ts'
import type { Sessions } from '../sessions.ts'
import type { Clock } from '../surroundings.ts'
import type { Timers } from '../timers.ts'
import { isOwed, type Validators } from './validators.ts'

export interface TaskTimersOptions {
  timers: Timers
  clock: Clock
  sessions(): Sessions
  /** Agents are started for what is delegated to them. */
  hasBegun(): boolean
  validators: Validators
  /** Its claim is seen to here from now on, if that is possible. */
  takeOver(tx: Tx, task: Task): Promise<boolean>
  settings(task: Task): TaskSettings
}

/** A program that takes longer to start has failed. */
const STARTING_MS = 5 * 60_000
/** For a claim whose turn has not come. */
const LOOK_AGAIN_MS = 60_000

/** The clocks of tasks as rows of the table of timers. */
export function createTaskTimers({
  timers,
  clock,
  sessions,
  hasBegun,
  validators,
  takeOver,
  settings,
}: TaskTimersOptions) {
  const openedAt = clock.now()
  /** Tasks whose workers were on their way when they should have taken them. */
  const lenient = new Set<string>()

  async function arm(tx: Tx, id: string, kind: TaskTimer, at: number) {
    // Of two timers the earlier stands, and this one may have moved on.
    await moveTimer(tx, `task_${kind}`, id, at)
    tx.afterCommit(() => timers.setFor(at))
  }

  async function disarm(tx: Tx, id: string, kind: TaskTimer) {
    await clearTimer(tx, `task_${kind}`, id)
    if (kind === 'ack') lenient.delete(id)
  }

  /** A paused one, too: a person holds its mail, and its tasks are not lost for that. */
  function isBusy(agent: string): boolean {
    if (sessions().isPaused(agent)) return true
    const state = sessions().session(agent)?.state
    return state === 'busy' || state === 'waiting_input'
  }

  /**
   * Nobody fails to take a task while the service was away, or while its program starts: the time to take it runs from
   * then on. A program that never comes up is not waited for for ever.
   */
  function isEarly(task: Task, now: number): boolean {
    if (task.due?.kind !== 'ack') return false
    const isLate = now >= Math.max(task.due.at, openedAt) + STARTING_MS
    const isOnItsWay = sessions().isComingUp(task.agent) || !hasBegun()
    if (isLate || !isOnItsWay) return lenient.delete(task.id) && !isLate
    lenient.add(task.id)
    return true
  }

  /** What its claim waits for has not begun: it stands in line, here or with another daemon, or does so from now on. */
  async function isToCome(tx: Tx, task: Task): Promise<boolean> {
    if (!isOwed(task)) return false
    if (!hasBegun()) return true
    const whereabouts = await validators.whereabouts(tx, task, tx.now)
    if (whereabouts === 'under_way') return false
    const isTaken = await takeOver(tx, task)
    // Taken again, where it fell out of the line here with a fault of the store; otherwise left as it is.
    return whereabouts === 'in_line' || isTaken
  }

  return {
    arm,
    disarm,
    /** Tells tasks what is due. */
    listen(tell: (tx: Tx, id: string, event: Happening) => Promise<Stepped>) {
      for (const kind of TASK_TIMERS) {
        timers.on(`task_${kind}`, async (tx, id) => {
          const task = await findTask(tx, id)
          if (task === undefined) return
          if (kind === 'validation' && (await isToCome(tx, task))) {
            return await arm(tx, id, kind, tx.now + LOOK_AGAIN_MS)
          }
          const isQueued = kind === 'ack' && isBusy(task.agent)
          if (kind === 'ack' && !isQueued && isEarly(task, tx.now)) {
            return await arm(tx, id, kind, tx.now + settings(task).ackMs)
          }
          // The runtime has it, and its agent is at work on something else: that has a clock of its own.
          const told = await tell(tx, id, isQueued ? { type: 'acknowledged', by: task.agent } : ON_DUE[kind])
          const still = timersOf(task)[kind]
          if (!told.ok && still !== undefined && still > tx.now) await arm(tx, id, kind, still)
        })
      }
    },
  }
}

export type TaskTimers = ReturnType<typeof createTaskTimers>
