import { readAgent } from '../agents/agents.ts'
import type { Sessions } from '../agents/sessions.ts'
import type { SessionState } from '../base/agent.ts'
import type { Clock } from '../base/clock.ts'
import type { Tx } from '../store/store.ts'
import type { Timers } from '../store/timers.ts'
import { nextTimerOf, ON_DUE, timerOf } from './core/events-and-effects.ts'
import type { TaskSettings } from './core/snapshot.ts'
import { lockTask, setTaskDue } from './store.ts'
import { TASK_TIMERS, type Task, type TaskTimer } from './task.ts'
import type { TellTask } from './tell-task.ts'
import { type ClaimOwners, needsValidation } from './validation/claim-owners.ts'

interface TaskTimersOptions {
  timers: Timers
  clock: Clock
  sessions(): Sessions
  /** Whether this daemon runs the agent. */
  isRunHere(agent: string): boolean
  /** Whether the daemon already starts agents for their tasks. */
  hasBegun(): boolean
  claimOwners: ClaimOwners
  /** Validates the task's claim here from now on. False if this daemon doesn't have its worker. */
  takeOver(tx: Tx, task: Task): Promise<boolean>
  settings(task: Task): TaskSettings
}

/** A program that takes longer to start counts as failed. */
const STARTING_MS = 5 * 60_000
/** Between looks at a claim that is still queued. */
const QUEUE_POLL_MS = 60_000

/** Fires the timers of tasks. A task's row stores the time of its earliest timer; the task itself says which one is due. */
export function createTaskTimers({
  timers,
  clock,
  sessions,
  isRunHere,
  hasBegun,
  claimOwners,
  takeOver,
  settings,
}: TaskTimersOptions) {
  const openedAt = clock.now()
  /** Tasks whose workers were still starting when the ack timer fired. */
  const awaitingStart = new Set<string>()

  function wakeAt(tx: Tx, at: number) {
    tx.afterCommit(() => timers.setFor(at))
  }

  /** Why a worker hasn't taken a task yet. */
  async function delayOf(tx: Tx, agent: string): Promise<'busy' | 'starting' | undefined> {
    const state = sessions().session(agent)?.state
    if (isBusy(state, sessions().isPaused(agent))) return 'busy'
    if (sessions().isComingUp(agent) || !hasBegun()) return 'starting'
    if (tx.lockRow === '' || state !== undefined || isRunHere(agent)) return undefined
    // Another daemon on the store may run the agent, and stores its session state.
    const row = await readAgent(tx, agent)
    if (row === undefined) return undefined
    if (isBusy(row.session_state, row.paused === 1)) return 'busy'
    return row.session_state === 'initializing' ? 'starting' : undefined
  }

  /**
   * The ack timer doesn't count while the service is down or the worker's program starts, but no longer than
   * STARTING_MS. Once after the start, the worker gets another full ack time.
   */
  function isEarly(task: Task, now: number, isStarting: boolean): boolean {
    if (task.due?.kind !== 'ack') return false
    const isLate = now >= Math.max(task.due.at, openedAt) + STARTING_MS
    if (isLate || !isStarting) return awaitingStart.delete(task.id) && !isLate
    awaitingStart.add(task.id)
    return true
  }

  /** Whether the claim is queued, here or at another daemon, so its timer must not fire yet. Takes over an orphaned claim. */
  async function isQueued(tx: Tx, task: Task): Promise<boolean> {
    if (!needsValidation(task)) return false
    if (!hasBegun()) return true
    const progress = await claimOwners.progressOf(tx, task, tx.now)
    if (progress === 'running') return false
    const isTaken = await takeOver(tx, task)
    // Taking a queued claim again changes nothing, unless a store error lost its place in the queue.
    return progress === 'queued' || isTaken
  }

  /** Returns `changed` if the event changed the task, or the time at which to look again. */
  async function fire(
    tx: Tx,
    task: Task,
    kind: TaskTimer,
    tell: TellTask,
  ): Promise<'changed' | number | undefined> {
    if (kind === 'validation' && (await isQueued(tx, task))) return tx.now + QUEUE_POLL_MS
    const delay = kind === 'ack' ? await delayOf(tx, task.agent) : undefined
    const isBusyElsewhere = delay === 'busy'
    if (kind === 'ack' && !isBusyElsewhere && isEarly(task, tx.now, delay === 'starting')) {
      return tx.now + settings(task).ackMs
    }
    // A busy agent will take the task after its turn, which has its own timer.
    const event = isBusyElsewhere ? ({ type: 'acknowledged', by: task.agent } as const) : ON_DUE[kind]
    const change = await tell(tx, task.id, event)
    return change.ok && change.value.version !== task.version ? 'changed' : undefined
  }

  return {
    changed(tx: Tx, before: Task, task: Task) {
      const next = nextTimerOf(task)
      if (next !== undefined && next !== nextTimerOf(before)) wakeAt(tx, next)
      if (task.due?.kind !== 'ack') awaitingStart.delete(task.id)
    },
    listen(tell: TellTask) {
      const due = async (tx: Tx, id: string) => {
        const task = await lockTask(tx, id)
        if (task === undefined) return
        let next: number | undefined
        for (const kind of TASK_TIMERS) {
          const at = timerOf(task, kind)
          if (at === undefined) continue
          const fired = at > tx.now ? at : await fire(tx, task, kind, tell)
          // The changed task has set its own next timer.
          if (fired === 'changed') return
          if (fired !== undefined && (next === undefined || fired < next)) next = fired
        }
        if (next === undefined) return
        setTaskDue(tx, id, next)
        wakeAt(tx, next)
      }
      timers.on('task', due, { table: 'tasks', ids: 'task' })
    },
  }
}

/** A paused agent counts as busy, because a person holds its mail back. */
function isBusy(state: SessionState | undefined, isPaused: boolean): boolean {
  return isPaused || state === 'busy' || state === 'waiting_input'
}

export type TaskTimers = ReturnType<typeof createTaskTimers>
