import type { Tx } from '../store/store.ts'
import type { Timers } from '../store/timers.ts'
import { type Breaker, CLOSED } from './core/breaker.ts'
import { pendingEffects, type TaskEffect, type TaskOutsideEffect, type WithKey } from './core/effect.ts'
import type { TaskEvent } from './core/event.ts'
import { type ReducedTask, reduce } from './core/reduce.ts'
import type { TaskSettings } from './core/settings.ts'
import type { TaskView } from './core/view.ts'
import { type AskedQuestion, askPerson, withdrawRequest } from './questions.ts'
import { createBreakers } from './store/breakers.ts'
import { childrenOf, findTask, insertTask, lockTask, updateTask } from './store/tasks.ts'
import { isEnd, reviewerOf, type Task } from './task.ts'
import type { TaskAudit } from './task-audit.ts'
import type { TaskChange, TellTask } from './task-change.ts'
import type { TaskMessages } from './task-messages.ts'
import type { TaskTimers } from './task-timers.ts'
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

  const tell: TellTask = async (tx, target, event, answerText) => {
    // With several daemons on one store, a task read without a lock may be outdated.
    const isCurrent = typeof target !== 'string' && tx.lockRow === ''
    const id = typeof target === 'string' ? target : target.id
    const task = isCurrent ? target : await lockTask(tx, id)
    if (task === undefined) throw new Error(`there is no ${id}`)
    const reduced = reduce(await viewOf(tx, task, event), event)
    if (!reduced.ok) return { ok: false, ...reduced.refusal }
    const state = claimOwners.assign(task, event.type, reduced.state)
    if (state.version !== task.version) {
      updateTask(tx, task, state)
      await applyEffects(tx, task, event, state, withAnswerText(reduced.effects, answerText))
    }
    return { ok: true, task: state }
  }

  /** Stores the task if both it and its parent accept, or neither. */
  async function begin(tx: Tx, task: Task): Promise<TaskChange> {
    const event: TaskEvent = { type: 'delegated' }
    const reduced: ReducedTask = reduce(await viewOf(tx, task, event), event)
    if (!reduced.ok) return { ok: false, ...reduced.refusal }
    if (task.parent !== null) {
      const { id: child, requiresResponse, delegator: by } = task
      const parent = await tell(tx, task.parent, { type: 'child_delegated', by, child, requiresResponse })
      if (!parent.ok) return parent
    }
    insertTask(tx, reduced.state)
    tx.audit(audit.delegated(task))
    await applyEffects(tx, task, event, reduced.state, reduced.effects)
    return { ok: true, task: reduced.state }
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
      case 'wake_parent':
        return messages.wakeParent(tx, task, effect)
      case 'ask_person':
        return askPerson(tx, timers, task, effect, audit.cut)
      case 'withdraw':
        return withdraw(tx, task, event, effect)
      case 'set_timer':
        taskTimers.armed(tx, effect.at)
        return
      case 'clear_timer':
        taskTimers.disarmed(task.id, effect.kind)
        return
      case 'record_outcome':
        return breakers.record(tx, effect.agent, effect.outcome, settings(task).breaker)
      case 'dispatch':
        // A refusal means that the relative no longer needs the event.
        return tell(tx, effect.task, effect.event)
      case 'note':
        tx.audit(audit.noted(task, effect.text))
        return
      case 'end':
      // The verdict itself carries out an approved action.
      case 'perform':
        return
      default:
        tx.afterCommit(() => perform(effect))
        return
    }
  }

  /** If the withdrawn request held a command, the agent learns that the command will not run (C9). */
  async function withdraw(tx: Tx, task: Task, event: TaskEvent, asked: AskedQuestion) {
    const held = await withdrawRequest(tx, task, asked)
    if (held === undefined) return
    const text = `${held.id} was withdrawn and not carried out, because its task has ended: ${held.question}`
    const { id, agent } = task
    await messages.send(tx, task, event, {
      type: 'send',
      kind: 'answer',
      to: agent,
      task: id,
      text,
      wake: true,
    })
  }

  async function viewOf(tx: Tx, task: Task, event: TaskEvent): Promise<TaskView> {
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

function withAnswerText(effects: readonly TaskEffect[], text: string | undefined): readonly TaskEffect[] {
  if (text === undefined) return effects
  return effects.map((effect) =>
    effect.type === 'send' && effect.kind === 'answer' ? { ...effect, text } : effect,
  )
}
