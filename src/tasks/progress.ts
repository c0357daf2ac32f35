import type { AuditDraft } from '../audit/entry.ts'
import { ORCHESTRATOR } from '../base/agent.ts'
import type { RedactedExcerpt } from '../base/excerpt.ts'
import { failure } from '../base/result.ts'
import type { MaybePromise, Reader, Tx } from '../store/store.ts'
import type { Timers } from '../store/timers.ts'
import {
  type Breaker,
  type BreakerSettings,
  CLOSED,
  recordOutcome,
  type WorkOutcome,
} from './core/circuit-breaker.ts'
import {
  pendingEffects,
  senderOf,
  type TaskEffect,
  type TaskEvent,
  type TaskOutsideEffect,
  type WithKey,
} from './core/events-and-effects.ts'
import { type ReducedTask, reduce } from './core/reduce.ts'
import type { TaskSettings, TaskSnapshot } from './core/snapshot.ts'
import { askPerson, withdrawRequest } from './questions.ts'
import { childrenOf, findTask, insertTask, lockTask, updateTask } from './store.ts'
import { isEnd, reviewerOf, type Task } from './task.ts'
import type { TaskMessages } from './task-messages.ts'
import type { TaskTimers } from './task-timers.ts'
import type { TaskChange, TellTask } from './tell-task.ts'
import type { ClaimOwners } from './validation/claim-owners.ts'

interface ProgressOptions {
  messages: TaskMessages
  audit: TaskAudit
  taskTimers: TaskTimers
  claimOwners: ClaimOwners
  timers: Timers
  /** Task time, which stops during a halt. */
  now(tx: Tx): number
  settings(task: Task): TaskSettings
  /** Runs after the commit, like the next three. */
  perform(effect: WithKey<TaskOutsideEffect>): void
  /** The task ended while its worker was in a turn on it. */
  interrupted(agent: string, task: string): void
  ended(task: Task): void
  /** The effect with this key is no longer needed. */
  abort(key: string): void
}

/** Loads a task, reduces an event, stores the result and carries out its effects, all in one transaction. */
export function createProgress(options: ProgressOptions) {
  const { messages, audit, taskTimers, claimOwners, timers, now, settings } = options
  const { perform, interrupted, ended, abort } = options
  const breakers = createBreakers()

  const tell: TellTask = async (tx, target, event) => {
    // With several daemons on one store, a task read without a lock may be outdated.
    const isCurrent = typeof target !== 'string' && tx.lockRow === ''
    const id = typeof target === 'string' ? target : target.id
    const task = isCurrent ? target : await lockTask(tx, id)
    if (task === undefined) throw new Error(`there is no ${id}`)
    const reduced = reduce(await snapshotOf(tx, task, event), event)
    if (!reduced.ok) return failure(reduced.refusal)
    const state = claimOwners.assign(task, event.type, reduced.state)
    if (state.version !== task.version) {
      updateTask(tx, task, state)
      await applyEffects(tx, task, event, state, reduced.effects)
    }
    return { ok: true, value: state }
  }

  /** Stores the task if both it and its parent accept, or neither. */
  async function begin(tx: Tx, task: Task): Promise<TaskChange> {
    const event: TaskEvent = { type: 'delegated' }
    const reduced: ReducedTask = reduce(await snapshotOf(tx, task, event), event)
    if (!reduced.ok) return failure(reduced.refusal)
    if (task.parent !== null) {
      const { id: child, requiresResponse, delegator: by } = task
      const parent = await tell(tx, task.parent, { type: 'child_delegated', by, child, requiresResponse })
      if (!parent.ok) return parent
    }
    insertTask(tx, reduced.state)
    tx.audit(audit.delegated(task))
    await applyEffects(tx, task, event, reduced.state, reduced.effects)
    return { ok: true, value: reduced.state }
  }

  /** Called once the task is stored: writes the audit and carries out the effects. */
  async function applyEffects(
    tx: Tx,
    before: Task,
    event: TaskEvent,
    task: Task,
    effects: readonly TaskEffect[],
  ) {
    const moved = audit.moved(before, task, event)
    if (moved !== undefined) tx.audit(moved)
    for (const entry of audit.evidence(before, task)) tx.audit(entry)
    if (isEnd(task.state) && !isEnd(before.state)) {
      await messages.withdraw(tx, task, `${task.id} has ended`)
      tx.afterCommit(() => ended(task))
      if (task.interrupts > before.interrupts) tx.afterCommit(() => interrupted(task.agent, task.id))
    }
    const reviewer = reviewerOf(before)
    if (reviewer !== null && reviewerOf(task) === null) await messages.withdrawReview(tx, before, reviewer)
    for (const effect of effects) {
      const done = carryOut(tx, task, event, effect)
      if (done !== undefined) await done
    }
    taskTimers.changed(tx, before, task)
    if (before.claim !== null) abortObsolete(tx, before, task)
  }

  /** Aborts the outside effects of a claim that the task no longer needs. */
  function abortObsolete(tx: Tx, before: Task, after: Task) {
    const needed = new Set(pendingEffects(after).map(({ key }) => key))
    for (const { key } of pendingEffects(before)) if (!needed.has(key)) tx.afterCommit(() => abort(key))
  }

  /** Undefined if there is nothing to await: most effects of a busy team are of this kind. */
  function carryOut(tx: Tx, task: Task, event: TaskEvent, effect: TaskEffect): Promise<unknown> | undefined {
    switch (effect.type) {
      case 'send':
        return messages.send(tx, task, event, effect)
      case 'ask_person':
        return askPerson(tx, timers, task, effect, audit.cut)
      case 'withdraw':
        return withdraw(tx, task, event, effect.question)
      case 'record_outcome':
        return breakers.record(tx, effect.agent, effect.outcome, settings(task).breaker)
      case 'dispatch':
        // A refusal means that the relative no longer needs the event.
        return tell(tx, effect.task, effect.event)
      case 'note':
        tx.audit(audit.noted(task, effect.text))
        return
      default:
        tx.afterCommit(() => perform(effect))
        return
    }
  }

  /** If the withdrawn request held a command, the agent learns that the command will not run (C9). */
  async function withdraw(tx: Tx, task: Task, event: TaskEvent, question: string) {
    const held = await withdrawRequest(tx, task, question)
    if (held === undefined) return
    const text = `${held.id} was withdrawn and not carried out, because its task has ended: ${held.question}`
    await messages.send(tx, task, event, { type: 'send', kind: 'answer', to: task.agent, text, wake: true })
  }

  async function snapshotOf(tx: Tx, task: Task, event: TaskEvent): Promise<TaskSnapshot> {
    const isSent = event.type === 'delegated' || event.type === 'retry_due'
    const breaker: Breaker = isSent ? await breakers.find(tx, task.agent) : CLOSED
    return {
      now: now(tx),
      task,
      parent: task.parent === null ? null : ((await findTask(tx, task.parent)) ?? null),
      children: task.delegations === 0 ? [] : await childrenOf(tx, task.id),
      ancestors: event.type === 'delegated' && task.parent !== null ? await ancestorsOf(tx, task) : [],
      breaker,
      settings: settings(task),
    }
  }

  return { tell, begin }
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

/** Builds the audit entries of tasks. */
export function createTaskAudit(cut: RedactedExcerpt) {
  return {
    cut,
    delegated: (task: Task): AuditDraft =>
      draft(task, 'delegated', task.delegator, `${task.id} for ${task.agent}: ${cut(task.text)}`),
    noted: (task: Task, text: string): AuditDraft =>
      draft(task, 'noted', ORCHESTRATOR, `${task.id}: ${cut(text)}`),
    /** New evidence about claims. Skipped steps and passed schemas are stored with the task only. */
    evidence(before: Task, task: Task): AuditDraft[] {
      const added = task.evidence.slice(before.evidence.length)
      return added
        .filter(({ step, outcome }) => outcome !== 'skipped' && !(step === 'schema' && outcome === 'passed'))
        .map(({ step, outcome, text }) => {
          const excerpt = cut(text)
          const entry = draft(task, 'evidence', ORCHESTRATOR, `${task.id}: ${step} ${outcome}: ${excerpt}`)
          return { ...entry, data: { ...entry.data, step, outcome, excerpt } }
        })
    },
    /** Undefined if neither state nor attempt changed. */
    moved(before: Task, task: Task, event: TaskEvent): AuditDraft | undefined {
      if (task.state === before.state && task.attempt === before.attempt) return undefined
      const why = isEnd(task.state) ? `: ${cut(task.reason ?? '')}` : ` (${event.type.replaceAll('_', ' ')})`
      const attempt =
        task.attempt === before.attempt ? '' : `, attempt ${task.attempt} of ${task.maxAttempts}`
      const text = `${task.id} is ${task.state}${attempt}${why}`
      return draft(task, task.state, senderOf(event) ?? ORCHESTRATOR, text)
    },
  }
}

type TaskAudit = ReturnType<typeof createTaskAudit>

function draft(task: Task, what: string, actor: string, text: string): AuditDraft {
  const { id, parent, root, state, attempt, delegator, agent } = task
  return {
    type: `task.${what}`,
    class: 'internal',
    actor,
    subject: agent,
    text,
    data: { task_id: id, parent, root, state, attempt, delegator, agent },
  }
}

interface BreakerRow {
  failures: number
  opened_at: number | null
  tried_at: number | null
}

async function findBreaker(reader: Reader, agent: string): Promise<Breaker | undefined> {
  const row = await reader.get<BreakerRow>('SELECT * FROM breakers WHERE agent = ?', [agent])
  if (row === undefined) return undefined
  return { failures: row.failures, openedAt: row.opened_at, triedAt: row.tried_at }
}

/** A breaker without failures has no row. */
function storeBreaker(tx: Tx, agent: string, breaker: Breaker): void {
  if (breaker.failures === 0) {
    tx.run('DELETE FROM breakers WHERE agent = ?', [agent])
    return
  }
  tx.run(
    `INSERT INTO breakers (agent, failures, opened_at, tried_at) VALUES (?, ?, ?, ?)
     ON CONFLICT (agent) DO UPDATE SET failures = excluded.failures, opened_at = excluded.opened_at,
       tried_at = excluded.tried_at`,
    [agent, breaker.failures, breaker.openedAt, breaker.triedAt],
  )
}

/** Circuit breakers of agents. Caches which are closed (most are) unless another daemon on the store could open one. */
function createBreakers() {
  const closed = new Set<string>()
  const isClosed = (tx: Tx, agent: string) => tx.lockRow === '' && closed.has(agent)

  async function load(tx: Tx, agent: string): Promise<Breaker> {
    const found = await findBreaker(tx, agent)
    if (found === undefined && tx.lockRow === '') tx.afterCommit(() => closed.add(agent))
    return found ?? CLOSED
  }

  async function change(tx: Tx, agent: string, outcome: WorkOutcome, settings: BreakerSettings) {
    const before = await load(tx, agent)
    const after = recordOutcome(before, outcome, tx.now, settings)
    if (after === before) return
    // Now for this transaction, and again after the `closed.add` that `load` may have scheduled.
    closed.delete(agent)
    tx.afterCommit(() => closed.delete(agent))
    storeBreaker(tx, agent, after)
  }

  return {
    find: (tx: Tx, agent: string): MaybePromise<Breaker> => (isClosed(tx, agent) ? CLOSED : load(tx, agent)),
    /** Undefined if there is nothing to await: a success doesn't change a closed breaker. */
    record(
      tx: Tx,
      agent: string,
      outcome: WorkOutcome,
      settings: BreakerSettings,
    ): Promise<void> | undefined {
      if (outcome === 'success' && isClosed(tx, agent)) return undefined
      return change(tx, agent, outcome, settings)
    },
  }
}
