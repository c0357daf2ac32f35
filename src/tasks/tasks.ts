import type { Sessions, SessionWatch } from '../agents/sessions.ts'
import type { Meter } from '../agents/usage.ts'
import type { Clock } from '../base/clock.ts'
import { redactedExcerpt } from '../base/excerpt.ts'
import { createKeyedLimiter } from '../base/keyed-limiter.ts'
import type { Log } from '../base/log.ts'
import type { HaltState } from '../commands/halt-state.ts'
import type { Team } from '../commands/team.ts'
import type { Config } from '../config/config.ts'
import type { Models } from '../llm/llm.ts'
import type { Mailboxes } from '../messages/mailboxes.ts'
import type { HumanRequestRow } from '../people/store/human-requests.ts'
import type { Store, Tx } from '../store/store.ts'
import type { Timers } from '../store/timers.ts'
import { createMeanwhile } from './buffer-during-halt.ts'
import { type Keyed, nextTimerOf, type OutsideEffect, pendingEffects } from './core/effect.ts'
import type { Happening } from './core/event.ts'
import { newTask, type TaskDraft } from './core/new-task.ts'
import { later } from './core/reduce.ts'
import { DEFAULT_TASK_SETTINGS, type TaskSettings } from './core/settings.ts'
import type { Refusal, Stepped } from './core/view.ts'
import type { Turn } from './current-task.ts'
import { createOutside, type OutsideOptions } from './effects.ts'
import { createProgress, type Progress } from './progress.ts'
import type { PersonsWord } from './questions.ts'
import { createRecord } from './record.ts'
import { createIdleStop } from './stop-idle-agents.ts'
import {
  findTask,
  lockTask,
  openTaskIds,
  setTaskDue,
  taskDue,
  unsettledTaskIds,
  updateTask,
} from './store/tasks.ts'
import type { Task } from './task.ts'
import { createMessages } from './task-messages.ts'
import { createTaskTimers } from './task-timers.ts'
import { type ApprovalAsked, createTaskVerdicts } from './task-verdicts.ts'
import { createJudging } from './validation/ask-judge.ts'
import { longestRun } from './validation/checks.ts'
import { createChecking } from './validation/run-checks.ts'
import { createValidators, isOwed } from './validation/validators.ts'
import { createWatch } from './watch-agents.ts'

/**
 * Around the pure core of src/tasks: `tasks/progress.ts` lets it decide and stores what it says, `tasks/watch.ts` tells it
 * what agents do, `tasks/outside.ts` does what the store cannot.
 */
export interface Tasks {
  /** Both the new task and its parent's consent, or neither. */
  delegate(tx: Tx, draft: Draft): Promise<{ ok: true; task: Task } | Refusal>
  /** Something happened to a task. */
  tell(tx: Tx, task: string | Task, event: Happening): Promise<Stepped>
  /** In this turn, the agent reported, asked or delegated for that task. */
  spoke(tx: Tx, agent: string, task: string): void
  /** What the agent's turn is about, or its last one until the next begins, as far as is known. */
  turnOf(agent: string): Turn
  /** The task that the agent's turn, or its last one, is about, where it is one. */
  spendsOn(agent: string): string | undefined
  /** A task that was ended while the agent was at it: what it reports may be a late word on that. */
  wasCutShort(agent: string): string | undefined
  /** A person's word on a request that a task asked. Throws what cannot be done: nothing of it is then kept. */
  decided(tx: Tx, row: HumanRequestRow, word: PersonsWord): Promise<string>
  expired(tx: Tx, row: HumanRequestRow): Promise<void>
  /** A rule holds a command of the agent until a person has decided: the task that it was said in waits for that. */
  approvalAsked(tx: Tx, task: string, asked: ApprovalAsked): Promise<void>
  /** `words` are for the asker. Says whether it was a task's, and so has told the asker. */
  approvalDecided(tx: Tx, row: HumanRequestRow, state: string, words: string): Promise<boolean>
  /** Lets another feature decide what is stored of the reports of its tasks. */
  onReport(filter: ReportFilter): void
  /** Applies the first filter that knows the task; without one the whole report is stored. */
  filterReport(tx: Tx, task: Task, said: string): Promise<FilteredReport>
  /** Calls the listener after the commit in which a task ended. Listeners catch up by themselves after a crash. */
  onEnded(listener: (task: Task) => void): void
  readonly watch: SessionWatch
  /** Everything is halted: checks and judges are broken off, and nothing is set in motion. */
  halt(): void
  /** Every clock of an open task is so much later: a halt is over. */
  postpone(tx: Tx, ms: number): Promise<void>
  /** After it: what the world outside owes to open tasks is done. */
  goOn(): void
  /** Agents can be started: what the world outside still owes to open tasks is done. */
  begin(): Promise<void>
  /** Resolves when no check runs any more. */
  close(): Promise<void>
}

export interface FilteredReport {
  /** The part of the report that is stored with the task. */
  readonly result: string
  /** Sends the report back to the agent. */
  readonly problem?: string
}

/** Undefined: the task is not the filter's. */
export type ReportFilter = (tx: Tx, task: Task, said: string) => Promise<FilteredReport | undefined>

/** Without a judge of its own, the one of orc.yaml judges it. */
export type Draft = Omit<TaskDraft, 'createdAt' | 'id'>

export interface TasksOptions {
  haltState: HaltState
  /** For an agent that comes to rest during a halt. */
  disturbed(agent: string): void
  store: Store
  mailboxes: Mailboxes
  timers: Timers
  clock: Clock
  log: Log
  redact(text: string): string
  team(): Team
  sessions(): Sessions
  /** For the judge. */
  models: Models | undefined
  meter: Meter
  /** For the checks. */
  environment: Readonly<NodeJS.ProcessEnv>
}

const JUDGED_AT_ONCE = 16

export function createTasks(options: TasksOptions): Tasks {
  const { store, mailboxes, timers, team, clock, log, sessions } = options
  const tell: Progress['tell'] = (...about) => progress.tell(...about)
  const idle = createIdleStop({ store, timers, log, team, sessions })
  const isHalted = () => options.haltState.halted() !== undefined
  const watch = createWatch({ store, log, sessions, tell, idle })
  /** An interrupt that came before anything was known of its agent is decided on as soon as something is. */
  const seen: SessionWatch = {
    async turnBegan(agent) {
      outside.known(agent)
      await watch.turnBegan(agent)
    },
    async turnEnded(agent, lastWords) {
      outside.known(agent)
      // Others read what a task says of an agent that forgot to report.
      await watch.turnEnded(agent, team().isConfidential(agent) ? '' : lastWords)
    },
    async exited(agent, why) {
      outside.known(agent)
      await watch.exited(agent, why)
    },
    unreachable: watch.unreachable,
  }
  const meanwhile = createMeanwhile(seen, { store, isHalted, disturbed: options.disturbed })
  const checking = createChecking({ store, clock, log, team, environment: options.environment })
  const outsideOptions: OutsideOptions = {
    store,
    log,
    team,
    sessions,
    checking,
    judgeLimiter: createKeyedLimiter(JUDGED_AT_ONCE),
    judge: createJudging({ store, clock, team, models: options.models, meter: options.meter }),
    isElsewhere(agent, task) {
      const known = watch.inTurn(agent)
      return known.size > 0 && !known.has(task)
    },
    tell,
  }
  /** Another one from each halt on: what was begun before it counts for nothing, and is begun again. */
  let outside = createOutside(outsideOptions)
  const settings = createSettings(team)
  const validators = createValidators(store)
  const clocks = createTaskTimers({
    timers,
    clock,
    sessions,
    isRunHere(agent) {
      const known = team().config.agents.find(({ name }) => name === agent)
      return known !== undefined && known.runtime !== 'none'
    },
    hasBegun: () => isUp,
    validators,
    takeOver,
    settings,
  })
  const cut = (text: string, most?: number) => redactedExcerpt(options.redact, text, most)
  const progress = createProgress({
    messages: createMessages({ mailboxes, cut, wake: (agent) => outside.wake(agent) }),
    record: createRecord(cut),
    clocks,
    validators,
    timers,
    now: options.haltState.now,
    settings,
    perform,
    cutShort: watch.cutShort.add,
    callOff: (key) => outside.callOff(key),
    ended(task) {
      for (const listener of endListeners) listener(task)
    },
  })
  const reportFilters: ReportFilter[] = []
  const endListeners: ((task: Task) => void)[] = []
  let begun = false
  let isUp = false

  function perform(effect: Keyed<OutsideEffect>) {
    // Before that, `begin` sees to all of it; in a halt, the end of it does.
    if (begun && !isHalted()) outside.perform(effect)
  }

  async function performAll() {
    const claims: Task[] = []
    for (const id of await unsettledTaskIds(store)) {
      const task = await findTask(store, id)
      if (task === undefined) continue
      if (isOwed(task)) claims.push(task)
      for (const effect of pendingEffects(task)) if (!isValidation(effect)) perform(effect)
    }
    if (claims.length > 0) await store.write((tx) => takeUp(tx, claims))
  }

  /** Those that another daemon sees to, or this one already, are left alone. */
  async function takeUp(tx: Tx, claims: readonly Task[]) {
    const isAtIt = (task: Task) => pendingEffects(task).some(({ key }) => outside.isUnderWay(key))
    for (const { id } of claims) {
      const task = await validators.take(tx, id, isAtIt)
      if (task === undefined) continue
      tx.afterCommit(() => pendingEffects(task).filter(isValidation).forEach(perform))
    }
  }

  /** The daemon that saw to it is gone; one that does not have its worker cannot see to it instead. */
  async function takeOver(tx: Tx, task: Task): Promise<boolean> {
    if (team().resolve(task.agent) === undefined) return false
    await takeUp(tx, [task])
    return true
  }

  clocks.listen(tell)
  mailboxes.onMoved(watch.moved)

  return {
    async delegate(tx, draft) {
      const { retries, judge, timeoutMs } = team().config.tasks
      const task = newTask({
        ...draft,
        // Null is none, whatever orc.yaml says.
        judge: draft.judge === undefined ? judge : draft.judge,
        timeoutMs: draft.timeoutMs ?? timeoutMs,
        maxAttempts: draft.maxAttempts ?? (retries === undefined ? undefined : retries + 1),
        id: `task_${await tx.nextKey('task')}`,
        createdAt: tx.now,
      })
      return await progress.begin(tx, task)
    },
    tell,
    watch: meanwhile.watch,
    turnOf: watch.turnOf,
    spendsOn: watch.spendsOn,
    wasCutShort: watch.cutShort.of,
    spoke: (tx, agent, task) => tx.afterCommit(() => watch.spoke(agent, task)),
    onReport: (filter) => void reportFilters.push(filter),
    async filterReport(tx, task, said) {
      for (const filter of reportFilters) {
        const filtered = await filter(tx, task, said)
        if (filtered !== undefined) return filtered
      }
      return { result: said }
    },
    onEnded: (listener) => void endListeners.push(listener),
    ...createTaskVerdicts(tell),
    async begin() {
      begun = true
      checking.begin()
      await performAll()
      isUp = true
    },
    halt() {
      void outside.close()
      outside = createOutside(outsideOptions)
    },
    async postpone(tx, ms) {
      for (const id of await openTaskIds(tx)) {
        const task = await lockTask(tx, id)
        // A held one's clocks stand still by themselves.
        if (task === undefined || task.held !== null || task.endedAt !== null) continue
        const rings = await taskDue(tx, id)
        updateTask(tx, task, later(task, ms))
        // Put off, and so later than the task itself says.
        if (rings !== undefined && rings > (nextTimerOf(task) ?? rings)) setTaskDue(tx, id, rings + ms)
      }
    },
    goOn() {
      meanwhile.goOn()
      performAll().catch((error: unknown) => log.error({ err: error }, 'tasks did not go on as a whole'))
    },
    async close() {
      watch.close()
      await outside.close()
    },
  }
}

function isValidation({ type }: OutsideEffect): boolean {
  return type === 'run_checks' || type === 'run_judge'
}

/** Those of orc.yaml are worked out once; the checks of a task add their time. */
function createSettings(team: () => Team): (task: Task) => TaskSettings {
  let known: { config: Config; settings: TaskSettings } | undefined
  return ({ checks }) => {
    const { config } = team()
    if (known?.config !== config) known = { config, settings: settingsOf(config) }
    const { settings } = known
    if (checks.length === 0) return settings
    return { ...settings, checksMs: settings.checksMs + longestRun(config, checks) }
  }
}

function settingsOf(config: Config): TaskSettings {
  const { depth, reminders, judgeMs, userInputMs } = config.tasks
  return {
    ...DEFAULT_TASK_SETTINGS,
    ...(judgeMs === undefined ? {} : { judgeMs: { model: judgeMs, agent: judgeMs } }),
    ...(depth === undefined ? {} : { maxDepth: depth }),
    ...(reminders === undefined ? {} : { maxReminders: reminders }),
    ...(userInputMs === undefined ? {} : { personMs: userInputMs }),
  }
}
