import { readAgent } from '../agents/agents.ts'
import type { Sessions } from '../agents/sessions.ts'
import type { SessionState } from '../base/agent.ts'
import type { Clock } from '../base/clock.ts'
import type { Tx } from '../store/store.ts'
import { TASK_TIMER } from '../store/timer-rows.ts'
import type { Timers } from '../store/timers.ts'
import { timerOf } from './core/effect.ts'
import { type Happening, ON_DUE } from './core/event.ts'
import type { TaskSettings } from './core/settings.ts'
import type { Stepped } from './core/view.ts'
import { lockTask, setTaskDue } from './store/tasks.ts'
import { TASK_TIMERS, type Task, type TaskTimer } from './task.ts'
import { isOwed, type Validators } from './validation/validators.ts'

export interface TaskTimersOptions {
  timers: Timers
  clock: Clock
  sessions(): Sessions
  /** Whether this daemon would start it. */
  isRunHere(agent: string): boolean
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

/** The clocks of tasks are columns of their rows: the earliest one rings, and the task says which that is. */
export function createTaskTimers({
  timers,
  clock,
  sessions,
  isRunHere,
  hasBegun,
  validators,
  takeOver,
  settings,
}: TaskTimersOptions) {
  const openedAt = clock.now()
  /** Tasks whose workers were on their way when they should have taken them. */
  const lenient = new Set<string>()

  function ringAt(tx: Tx, at: number) {
    tx.afterCommit(() => timers.setFor(at))
  }

  /** What keeps a worker from taking a task: `busy` with another, or on its way `up`. */
  async function keeps(tx: Tx, agent: string): Promise<'busy' | 'up' | undefined> {
    const state = sessions().session(agent)?.state
    if (isBusy(state, sessions().isPaused(agent))) return 'busy'
    if (sessions().isComingUp(agent) || !hasBegun()) return 'up'
    if (tx.lockRow === '' || state !== undefined || isRunHere(agent)) return undefined
    // Another daemon on the same store may run it: what that last wrote down of it counts.
    const row = await readAgent(tx, agent)
    if (row === undefined) return undefined
    if (isBusy(row.session_state, row.paused === 1)) return 'busy'
    return row.session_state === 'initializing' ? 'up' : undefined
  }

  /**
   * Nobody fails to take a task while the service was away, or while its program starts: the time to take it runs from
   * then on. A program that never comes up is not waited for for ever.
   */
  function isEarly(task: Task, now: number, isOnItsWay: boolean): boolean {
    if (task.due?.kind !== 'ack') return false
    const isLate = now >= Math.max(task.due.at, openedAt) + STARTING_MS
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

  /** What became of one that is due: the task was told, and has changed by it, or it is looked at again at that time. */
  async function ring(tx: Tx, task: Task, kind: TaskTimer, tell: Tell): Promise<'told' | number | undefined> {
    if (kind === 'validation' && (await isToCome(tx, task))) return tx.now + LOOK_AGAIN_MS
    const kept = kind === 'ack' ? await keeps(tx, task.agent) : undefined
    const isQueued = kept === 'busy'
    if (kind === 'ack' && !isQueued && isEarly(task, tx.now, kept === 'up')) {
      return tx.now + settings(task).ackMs
    }
    // The runtime has it, and its agent is at work on something else: that has a clock of its own.
    const told = await tell(tx, task.id, isQueued ? { type: 'acknowledged', by: task.agent } : ON_DUE[kind])
    return told.ok && told.task.version !== task.version ? 'told' : undefined
  }

  return {
    /** The task is stored with it; the alarm is set for it, too. */
    armed: ringAt,
    disarmed(id: string, kind: TaskTimer) {
      if (kind === 'ack') lenient.delete(id)
    },
    /** Tells tasks what is due. */
    listen(tell: Tell) {
      timers.on(TASK_TIMER, async (tx, id) => {
        const task = await lockTask(tx, id)
        if (task === undefined) return
        let next: number | undefined
        for (const kind of TASK_TIMERS) {
          const at = timerOf(task, kind)
          if (at === undefined) continue
          const rung = at > tx.now ? at : await ring(tx, task, kind, tell)
          // Whatever else is due, the task as it is now says.
          if (rung === 'told') return
          if (rung !== undefined && (next === undefined || rung < next)) next = rung
        }
        if (next === undefined) return
        setTaskDue(tx, id, next)
        ringAt(tx, next)
      })
    },
  }
}

type Tell = (tx: Tx, id: string, event: Happening) => Promise<Stepped>

/** A paused one, too: a person holds its mail, and its tasks are not lost for that. */
function isBusy(state: SessionState | undefined, isPaused: boolean): boolean {
  return isPaused || state === 'busy' || state === 'waiting_input'
}

export type TaskTimers = ReturnType<typeof createTaskTimers>
