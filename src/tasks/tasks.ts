import type { Sessions, SessionWatch } from '../agents/sessions.ts'
import type { UsageTracker } from '../agents/usage-and-limits.ts'
import type { Clock } from '../base/clock.ts'
import { redactedExcerpt } from '../base/excerpt.ts'
import { createKeyedLimiter } from '../base/keyed-limiter.ts'
import type { Log } from '../base/log.ts'
import type { HaltState } from '../commands/halt-state.ts'
import type { Team } from '../commands/team.ts'
import type { Config } from '../config/config.ts'
import type { Models } from '../llm/llm.ts'
import type { Mailboxes } from '../messages/mailboxes.ts'
import type { Store, Tx } from '../store/store.ts'
import type { Timers } from '../store/timers.ts'
import {
  nextTimerOf,
  pendingEffects,
  type TaskOutsideEffect,
  type WithKey,
} from './core/events-and-effects.ts'
import { newTask, shiftTimers, type TaskDraft } from './core/reduce.ts'
import { DEFAULT_TASK_SETTINGS, type TaskSettings } from './core/snapshot.ts'
import { createTaskEffects, type TaskEffectsOptions } from './effects.ts'
import { createProgress, createTaskAudit } from './progress.ts'
import {
  findTask,
  lockTask,
  openTaskIds,
  setTaskDue,
  taskDue,
  unsettledTaskIds,
  updateTask,
} from './store.ts'
import type { Task } from './task.ts'
import { createTaskMessages } from './task-messages.ts'
import { createTaskTimers } from './task-timers.ts'
import type { TaskChange, TellTask } from './tell-task.ts'
import { createCheckRunner, longestRun } from './validation/checks.ts'
import { createClaimOwners, needsValidation } from './validation/claim-owners.ts'
import { createJudgeRunner } from './validation/judge.ts'
import { type AgentTurn, createIdleStop, watchAgents } from './watch-agents.ts'

export type { TaskEvent } from './core/events-and-effects.ts'
export { heldInTasks, taskRequestOwner } from './questions.ts'
export { findTask } from './store.ts'
export type { TaskChange } from './tell-task.ts'

/**
 * Delegated work. The pure core decides (`core/reduce.ts`), `progress.ts` stores what it decides, `watch-agents.ts` reports
 * what agents do, and `effects.ts` acts outside of the store.
 */
export interface Tasks {
  /** Stores the new task if both it and its parent accept, or neither. */
  delegate(tx: Tx, draft: NewTask): Promise<TaskChange>
  tell: TellTask
  /** The agent reported, asked or delegated for the task in this turn. */
  spoke(tx: Tx, agent: string, task: string): void
  /** The tasks of the agent's turn, or of its last one until the next begins, as far as they are known. */
  turnOf(agent: string): AgentTurn
  /** The only task of the agent's turn, or of its last one. */
  spendsOn(agent: string): string | undefined
  /** A task that ended while the agent worked on it: its next report may be about that one. */
  wasCutShort(agent: string): string | undefined
  /** Lets another feature decide what is stored of the reports of its tasks. */
  onReport(filter: ReportFilter): void
  /** Applies the first filter that knows the task; without one the whole report is stored. */
  filterReport(tx: Tx, task: Task, report: string): Promise<FilteredReport>
  /** Calls the listener after the commit in which a task ended. Listeners catch up by themselves after a crash. */
  onEnded(listener: (task: Task) => void): void
  readonly watch: SessionWatch
  /** Aborts checks and judges, and starts nothing until `endHalt`. */
  halt(): void
  /** Moves every timer of open tasks by the length of a halt. */
  postpone(tx: Tx, ms: number): Promise<void>
  /** The halt is over: carries out pending effects. */
  endHalt(): void
  /** Agents can be started: carries out pending effects. */
  begin(): Promise<void>
  /** Resolves when no check runs. */
  close(): Promise<void>
}

/** A task without a judge gets the judge of orc.yaml; null means none. */
type NewTask = Omit<TaskDraft, 'createdAt' | 'id'>

export interface FilteredReport {
  /** The part of the report that is stored with the task. */
  readonly result: string
  /** Sends the report back to the agent. */
  readonly problem?: string
}

/** Undefined: the task is not the filter's. */
type ReportFilter = (tx: Tx, task: Task, report: string) => Promise<FilteredReport | undefined>

interface TasksOptions {
  haltState: HaltState
  /** The agent's turn ended during a halt. */
  haltAffects(agent: string): void
  store: Store
  mailboxes: Mailboxes
  timers: Timers
  clock: Clock
  log: Log
  redact(text: string): string
  team(): Team
  sessions(): Sessions
  /** For judges. */
  models: Models | undefined
  usageTracker: UsageTracker
  /** For checks. */
  environment: Readonly<NodeJS.ProcessEnv>
}

/** Enough to keep a model provider busy without running into its rate limit after a restart. */
const PARALLEL_JUDGEMENTS = 16

export function createTasks(options: TasksOptions): Tasks {
  const { store, mailboxes, timers, team, clock, log, sessions, haltAffects } = options
  const tell: TellTask = (...event) => progress.tell(...event)
  const idle = createIdleStop({ store, timers, log, team, sessions })
  const isHalted = () => options.haltState.halted() !== undefined
  const agents = watchAgents({
    store,
    log,
    sessions,
    tell,
    idle,
    sessionKnown: (agent) => effects.sessionKnown(agent),
    isConfidential: (agent) => team().isConfidential(agent),
    isHalted,
    haltAffects,
  })
  const checks = createCheckRunner({ store, clock, log, team, environment: options.environment })
  const effectsOptions: TaskEffectsOptions = {
    store,
    log,
    team,
    sessions,
    checks,
    judgeLimiter: createKeyedLimiter(PARALLEL_JUDGEMENTS),
    judge: createJudgeRunner({
      store,
      clock,
      hasModel: (name) => Object.hasOwn(team().config.models, name),
      models: options.models,
      meterCall: (task) => options.usageTracker.ownCall('judge', task),
    }),
    isOnOtherTask: agents.isOnOtherTask,
    tell,
  }
  /** Replaced at each halt: effects that began before it are aborted, and begin again after it. */
  let effects = createTaskEffects(effectsOptions)
  const settings = (task: Task) => settingsOf(team().config, task)
  const claimOwners = createClaimOwners(store)
  const taskTimers = createTaskTimers({
    timers,
    clock,
    sessions,
    isRunHere(agent) {
      const known = team().config.agents.find(({ name }) => name === agent)
      return known !== undefined && known.runtime !== 'none'
    },
    hasBegun: () => isUp,
    claimOwners,
    takeOver,
    settings,
  })
  const cut = (text: string, most?: number) => redactedExcerpt(options.redact, text, most)
  const progress = createProgress({
    messages: createTaskMessages({ mailboxes, cut, wake: (agent) => effects.wake(agent) }),
    audit: createTaskAudit(cut),
    taskTimers,
    claimOwners,
    timers,
    now: options.haltState.now,
    settings,
    perform,
    interrupted: agents.interruptedTasks.add,
    ended(task) {
      for (const listener of endListeners) listener(task)
    },
    abort: (key) => effects.abort(key),
  })
  const reportFilters: ReportFilter[] = []
  const endListeners: ((task: Task) => void)[] = []
  /** Agents can be started. */
  let mayPerform = false
  /** The effects that an earlier service left are under way. */
  let isUp = false

  function perform(effect: WithKey<TaskOutsideEffect>) {
    // Before `begin` and during a halt, `performAll` will find the effect.
    if (mayPerform && !isHalted()) effects.perform(effect)
  }

  async function performAll() {
    const claims: Task[] = []
    for (const id of await unsettledTaskIds(store)) {
      const task = await findTask(store, id)
      if (task === undefined) continue
      if (needsValidation(task)) claims.push(task)
      for (const effect of pendingEffects(task)) if (!isValidation(effect)) perform(effect)
    }
    if (claims.length > 0) await store.write((tx) => validateHere(tx, claims))
  }

  /** Skips claims that this or another daemon already validates. */
  async function validateHere(tx: Tx, claims: readonly Task[]) {
    const isValidating = (task: Task) => pendingEffects(task).some(({ key }) => effects.isRunning(key))
    for (const { id } of claims) {
      const task = await claimOwners.take(tx, id, isValidating)
      if (task === undefined) continue
      tx.afterCommit(() => pendingEffects(task).filter(isValidation).forEach(perform))
    }
  }

  /** Validates a claim whose daemon is gone, if this daemon has its worker. */
  async function takeOver(tx: Tx, task: Task): Promise<boolean> {
    if (team().resolve(task.agent) === undefined) return false
    await validateHere(tx, [task])
    return true
  }

  taskTimers.listen(tell)
  mailboxes.onMoved(agents.deliveryMoved)

  return {
    async delegate(tx, draft) {
      const { retries, judge, timeoutMs } = team().config.tasks
      const task = newTask({
        ...draft,
        judge: draft.judge === undefined ? judge : draft.judge,
        timeoutMs: draft.timeoutMs ?? timeoutMs,
        maxAttempts: draft.maxAttempts ?? (retries === undefined ? undefined : retries + 1),
        id: `task_${await tx.nextKey('task')}`,
        createdAt: tx.now,
      })
      return await progress.begin(tx, task)
    },
    tell,
    watch: agents.sessionWatch,
    turnOf: agents.turnOf,
    spendsOn: agents.spendsOn,
    wasCutShort: agents.interruptedTasks.lastOf,
    spoke: (tx, agent, task) => tx.afterCommit(() => agents.spoke(agent, task)),
    onReport: (filter) => void reportFilters.push(filter),
    async filterReport(tx, task, report) {
      for (const filter of reportFilters) {
        const filtered = await filter(tx, task, report)
        if (filtered !== undefined) return filtered
      }
      return { result: report }
    },
    onEnded: (listener) => void endListeners.push(listener),
    async begin() {
      mayPerform = true
      checks.begin()
      await performAll()
      isUp = true
    },
    halt() {
      void effects.close()
      effects = createTaskEffects(effectsOptions)
    },
    async postpone(tx, ms) {
      for (const id of await openTaskIds(tx)) {
        const task = await lockTask(tx, id)
        // The timers of a held task are stopped anyway.
        if (task === undefined || task.held !== null || task.endedAt !== null) continue
        const storedDue = await taskDue(tx, id)
        updateTask(tx, task, shiftTimers(task, ms))
        // A timer that was postponed is stored with a later time than the task's own.
        if (storedDue !== undefined && storedDue > (nextTimerOf(task) ?? storedDue)) {
          setTaskDue(tx, id, storedDue + ms)
        }
      }
    },
    endHalt() {
      agents.resume()
      performAll().catch((error: unknown) =>
        log.error({ err: error }, 'not all tasks continued after a halt'),
      )
    },
    async close() {
      agents.close()
      await effects.close()
    },
  }
}

function isValidation({ type }: TaskOutsideEffect): boolean {
  return type === 'run_checks' || type === 'run_judge'
}

/** The settings of orc.yaml. The timeouts of a task's checks come on top. */
function settingsOf(config: Config, { checks }: Task): TaskSettings {
  const { depth, reminders, judgeMs, userInputMs } = config.tasks
  return {
    ...DEFAULT_TASK_SETTINGS,
    checksMs: DEFAULT_TASK_SETTINGS.checksMs + longestRun(config, checks),
    ...(judgeMs === undefined ? {} : { judgeMs: { model: judgeMs, agent: judgeMs } }),
    ...(depth === undefined ? {} : { maxDepth: depth }),
    ...(reminders === undefined ? {} : { maxReminders: reminders }),
    ...(userInputMs === undefined ? {} : { personMs: userInputMs }),
  }
}
