import { OPERATOR, ORCHESTRATOR } from '../model/agent.ts'
import { AppError } from '../model/errors.ts'
import { formatId } from '../model/identifier.ts'
import { isEnd, TASK_TIMERS, type Task } from '../model/task.ts'
import type { Models } from '../models/model.ts'
import { findBreaker, keepBreaker } from '../store/breakers.ts'
import type { HumanRequestRow } from '../store/human-requests.ts'
import type { Store, Tx } from '../store/store.ts'
import { childrenOf, findTask, insertTask, openTaskIds, openTasksOf, updateTask } from '../store/tasks.ts'
import { clearTimer, setTimer } from '../store/timers.ts'
import { CLOSED, recordOutcome } from '../tasks/breaker.ts'
import { type Effect, type Keyed, type OutsideEffect, pendingEffects, timersOf } from '../tasks/effect.ts'
import { byOf, type Happening, ON_DUE } from '../tasks/happening.ts'
import { newTask, type TaskDraft } from '../tasks/new-task.ts'
import { DEFAULT_TASK_SETTINGS, type TaskSettings } from '../tasks/settings.ts'
import { step } from '../tasks/step.ts'
import { type Accepted, REFUSALS, type Refusal, type Stepped, type View } from '../tasks/view.ts'
import type { Mailroom } from './mailroom.ts'
import type { Sessions, SessionWatch } from './sessions.ts'
import type { Clock, Log } from './surroundings.ts'
import { createIdleStop } from './tasks/idle.ts'
import { createMessages } from './tasks/messages.ts'
import { createOutside } from './tasks/outside.ts'
import { askedIn, askPerson, eventOf, type PersonsWord, withdrawRequest } from './tasks/requests.ts'
import { createWatch } from './tasks/watch.ts'
import type { Team } from './team.ts'
import type { Timers } from './timers.ts'

/**
 * Around the pure core of src/tasks: loads a task, lets `step` decide, and carries out what it says in the same
 * transaction, or after the commit where the world outside is concerned.
 */
export interface Tasks {
  /** Both the new task and its parent's consent, or neither. */
  delegate(tx: Tx, draft: Draft): Promise<{ ok: true; task: Task } | Refusal>
  /** Something happened to a task. */
  tell(tx: Tx, id: string, event: Happening): Promise<Stepped>
  /** In this turn, the agent reported, asked or delegated for that task. */
  spoke(tx: Tx, agent: string, task: string): void
  /** The tasks that the agent's current turn is about, as far as is known. */
  inTurn(agent: string): ReadonlySet<string>
  /** A person's word on a request that a task asked. Throws what cannot be done: nothing of it is then kept. */
  decided(tx: Tx, row: HumanRequestRow, word: PersonsWord): Promise<string>
  expired(tx: Tx, row: HumanRequestRow): Promise<void>
  /** A rule holds a command of the agent until a person has decided: its task waits for that. */
  approvalAsked(tx: Tx, agent: string, request: string, text: string): Promise<void>
  /** `words` are for the asker. Says whether it was a task's, and so has told the asker. */
  approvalDecided(tx: Tx, row: HumanRequestRow, state: string, words: string): Promise<boolean>
  readonly watch: SessionWatch
  /** Agents can be started: what the world outside still owes to open tasks is done. */
  begin(): Promise<void>
  close(): void
}

export type Draft = Omit<TaskDraft, 'parent' | 'createdAt' | 'maxAttempts' | 'judge' | 'id'> & {
  parent?: Task
}

export interface TasksOptions {
  store: Store
  mailroom: Mailroom
  timers: Timers
  clock: Clock
  log: Log
  redact(text: string): string
  team(): Team
  sessions(): Sessions
  /** For the judge. */
  models: Models | undefined
}

const LOADED_AT_ONCE = 200
const EXCERPT = 280
const LONGEST_SECRET = 8192

export function createTasks(options: TasksOptions): Tasks {
  const { store, mailroom, timers, team, clock, log } = options
  const idle = createIdleStop({ store, timers, log, team, sessions: options.sessions })
  const watch = createWatch({ store, log, sessions: options.sessions, tell, idle })
  const outside = createOutside({
    store,
    clock,
    log,
    team,
    sessions: options.sessions,
    models: options.models,
    isElsewhere(agent, task) {
      const known = watch.inTurn(agent)
      return known.size > 0 && !known.has(task)
    },
    tell,
  })
  const messages = createMessages({ mailroom, redact: options.redact, wake: outside.wake })
  let begun = false

  /** For the audit: redacted before it is cut, because of half a secret no rule would know the rest. */
  const cut = (text: string) => options.redact(text.slice(0, EXCERPT + LONGEST_SECRET)).slice(0, EXCERPT)

  function settings(): TaskSettings {
    const { depth, reminders } = team().config.tasks
    return {
      ...DEFAULT_TASK_SETTINGS,
      ...(depth === undefined ? {} : { maxDepth: depth }),
      ...(reminders === undefined ? {} : { maxReminders: reminders }),
    }
  }

  async function viewOf(tx: Tx, task: Task, event: Happening): Promise<View> {
    const isSent = event.type === 'delegated' || event.type === 'retry_due'
    return {
      now: tx.now,
      task,
      parent: task.parent === null ? null : ((await findTask(tx, task.parent)) ?? null),
      children: task.delegations === 0 ? [] : await childrenOf(tx, task.id),
      ancestors: event.type === 'delegated' ? await ancestorsOf(tx, task) : [],
      breaker: isSent ? ((await findBreaker(tx, task.agent)) ?? CLOSED) : CLOSED,
    }
  }

  /** `words`: what an answer to the worker says, where somebody knows it better than the core. */
  async function tell(tx: Tx, id: string, event: Happening, words?: string): Promise<Stepped> {
    const task = await findTask(tx, id)
    if (task === undefined) throw new Error(`there is no ${id}`)
    const stepped = step(await viewOf(tx, task, event), event, settings())
    if (stepped.ok) await keep(tx, task, event, words === undefined ? stepped : reworded(stepped, words))
    return stepped
  }

  /** Stores what a step decided and carries its effects out, in their order. */
  async function keep(tx: Tx, before: Task, event: Happening, stepped: Accepted) {
    const { task, effects } = stepped
    if (task.version === before.version) return
    await updateTask(tx, task)
    if (task.state !== before.state || task.attempt !== before.attempt)
      tx.audit(stateEntry(before, task, event, cut))
    if (isEnd(task.state) && !isEnd(before.state)) await messages.withdraw(tx, task, `${task.id} has ended`)
    for (const effect of effects) await carryOut(tx, task, event, effect)
  }

  async function carryOut(tx: Tx, task: Task, event: Happening, effect: Effect) {
    switch (effect.type) {
      case 'send':
        return await messages.send(tx, task, event, effect)
      case 'wake_parent':
        return await messages.wakeParent(tx, task, effect)
      case 'ask_person':
        return await askPerson(tx, timers, task, effect, cut)
      case 'withdraw':
        return await withdrawRequest(tx, effect)
      case 'set_timer':
        return await arm(tx, task.id, effect.kind, effect.at)
      case 'clear_timer':
        return await clearTimer(tx, `task_${effect.kind}`, task.id)
      case 'record_outcome': {
        const known = (await findBreaker(tx, effect.agent)) ?? CLOSED
        const after = recordOutcome(known, effect.outcome, tx.now, settings().breaker)
        return after === known ? undefined : await keepBreaker(tx, effect.agent, after)
      }
      case 'tell':
        // Refused where it is late news to the relative.
        return void (await tell(tx, effect.task, effect.event))
      case 'note':
        return tx.audit(entry(task, 'noted', ORCHESTRATOR, `${task.id}: ${cut(effect.text)}`))
      case 'end':
      // What was approved is carried out by the verdict itself.
      case 'perform':
        return
      default:
        return tx.afterCommit(() => perform(effect))
    }
  }

  function perform(effect: Keyed<OutsideEffect>) {
    // Before that, `begin` sees to all of it.
    if (begun) outside.perform(effect)
  }

  async function arm(tx: Tx, id: string, kind: (typeof TASK_TIMERS)[number], at: number) {
    // Of two timers the earlier stands, and this one may have moved on.
    await clearTimer(tx, `task_${kind}`, id)
    await setTimer(tx, `task_${kind}`, id, at)
    tx.afterCommit(() => timers.setFor(at))
  }

  async function delegate(tx: Tx, { parent, ...draft }: Draft): Promise<{ ok: true; task: Task } | Refusal> {
    const { retries, judge, timeoutMs } = team().config.tasks
    const id = `task_${await tx.nextKey('task')}`
    const task = newTask({
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      ...draft,
      id,
      createdAt: tx.now,
      judge: judge === undefined || options.models === undefined ? null : 'llm',
      ...(retries === undefined ? {} : { maxAttempts: retries + 1 }),
      ...(parent === undefined ? {} : { parent }),
    })
    const event: Happening = { type: 'delegated' }
    const admitted = step(await viewOf(tx, task, event), event, settings())
    if (!admitted.ok) return admitted
    if (parent !== undefined) {
      const { requiresResponse, delegator: by } = task
      const told = await tell(tx, parent.id, { type: 'child_delegated', by, child: id, requiresResponse })
      if (!told.ok) return told
    }
    await insertTask(tx, task)
    tx.audit(entry(task, 'delegated', task.delegator, `${id} for ${task.agent}: ${cut(task.text)}`))
    await keep(tx, task, event, admitted)
    return { ok: true, task: admitted.task }
  }

  for (const kind of TASK_TIMERS) {
    timers.on(`task_${kind}`, async (tx, id) => {
      const task = await findTask(tx, id)
      if (task === undefined) return
      const isQueued = kind === 'ack' && isBusy(task.agent)
      // The runtime has it, and its agent is at work on something else: that has a clock of its own.
      const told = await tell(tx, id, isQueued ? { type: 'acknowledged', by: task.agent } : ON_DUE[kind])
      const still = timersOf(task)[kind]
      if (!told.ok && still !== undefined && still > tx.now) await arm(tx, id, kind, still)
    })
  }

  function isBusy(agent: string): boolean {
    const state = options.sessions().session(agent)?.state
    return state === 'busy' || state === 'waiting_input'
  }

  mailroom.onMoved(watch.moved)

  return {
    delegate,
    tell,
    watch,
    inTurn: watch.inTurn,
    spoke: (tx, agent, task) => tx.afterCommit(() => watch.spoke(agent, task)),
    async decided(tx, row, word) {
      const { task: id, question } = askedIn(row)
      const kind = (await findTask(tx, id))?.questions.find((one) => one.id === question)?.kind
      if (kind === undefined) {
        throw new AppError('CONFLICT', `${id} does not wait for this any more`, { hint: `orc task ${id}` })
      }
      const event = eventOf(row, kind, word)
      if (event instanceof AppError) throw event
      const told = await tell(tx, id, event)
      if (!told.ok) throw refusalError(told)
      return `${id} goes on`
    },
    async expired(tx, row) {
      const { task, question } = askedIn(row)
      await tell(tx, task, { type: 'question_expired', question })
    },
    async approvalAsked(tx, agent, question, text) {
      const open = await openTasksOf(tx, agent)
      const inTurn = open.filter(({ id }) => watch.inTurn(agent).has(id))
      const task = open.length === 1 ? open[0] : inTurn.length === 1 ? inTurn[0] : undefined
      if (task !== undefined) await tell(tx, task.id, { type: 'approval_asked', by: agent, question, text })
    },
    async approvalDecided(tx, row, state, words) {
      const question = formatId('req', row.id)
      const task = (await openTasksOf(tx, row.asker)).find(({ questions }) =>
        questions.some(({ id }) => id === question),
      )
      if (task === undefined) return false
      const isExpired = state === 'expired'
      const by = isExpired ? ORCHESTRATOR : OPERATOR
      const verdict = isExpired ? 'expired' : state === 'approved' ? 'approved' : 'rejected'
      const told = await tell(tx, task.id, { type: 'approval_decided', by, question, verdict }, words)
      return told.ok
    },
    async begin() {
      begun = true
      const ids = await openTaskIds(store)
      for (let at = 0; at < ids.length; at += LOADED_AT_ONCE) {
        for (const id of ids.slice(at, at + LOADED_AT_ONCE)) {
          const task = await findTask(store, id)
          if (task !== undefined) for (const effect of pendingEffects(task)) perform(effect)
        }
      }
    },
    close() {
      watch.close()
      outside.close()
    },
  }
}

function reworded(stepped: Accepted, text: string): Accepted {
  const effects = stepped.effects.map((effect) =>
    effect.type === 'send' && effect.kind === 'answer' ? { ...effect, text } : effect,
  )
  return { ...stepped, effects }
}

async function ancestorsOf(tx: Tx, task: Task): Promise<Task[]> {
  const found: Task[] = []
  for (let up = task.parent; up !== null; ) {
    const ancestor = await findTask(tx, up)
    if (ancestor === undefined) break
    found.unshift(ancestor)
    up = ancestor.parent
  }
  return found
}

function stateEntry(before: Task, task: Task, event: Happening, cut: (text: string) => string) {
  const why = isEnd(task.state) ? `: ${cut(task.reason ?? '')}` : ` (${event.type.replaceAll('_', ' ')})`
  const attempt = task.attempt === before.attempt ? '' : `, attempt ${task.attempt} of ${task.maxAttempts}`
  const text = `${task.id} is ${task.state}${attempt}${why}`
  return entry(task, task.state, byOf(event) ?? ORCHESTRATOR, text)
}

function entry(task: Task, what: string, actor: string, text: string) {
  const { id, parent, root, state, attempt, delegator, agent } = task
  return {
    type: `task.${what}`,
    class: 'internal' as const,
    actor,
    subject: agent,
    text,
    data: { task_id: id, parent, root, state, attempt, delegator, agent },
  }
}

const HINTS: Partial<Record<Refusal['code'], string>> = {
  TASK_ENDED: 'Nothing more is to be done about it.',
  DUPLICATE: 'It was taken once; go on.',
  NOT_YOURS: 'Name a task of your own; each message says its task.',
  NOT_RELATED: 'Questions go to whoever gave you the task, and to those you gave one to.',
  UNDER_VALIDATION: 'You will be told.',
  UNKNOWN_QUESTION: 'in_response_to is the id of the message that asked, such as msg_12.',
}

/** What is refused is said in the words of the core, under a code that every transport knows. */
export function refusalError({ code, message }: Refusal): AppError {
  const hint = HINTS[code]
  return new AppError(REFUSALS[code], message, {
    ...(hint === undefined ? {} : { hint }),
    data: { refusal: code },
  })
}
