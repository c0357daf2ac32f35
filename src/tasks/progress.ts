import type { Tx } from '../store/store.ts'
import type { Timers } from '../store/timers.ts'
import { createBreakers } from './breakers.ts'
import { CLOSED } from './core/breaker.ts'
import { type Effect, type Keyed, type OutsideEffect, pendingEffects } from './core/effect.ts'
import type { Happening } from './core/event.ts'
import { step } from './core/reduce.ts'
import type { TaskSettings } from './core/settings.ts'
import type { Accepted, Refusal, Stepped, View } from './core/view.ts'
import { type Asked, askPerson, withdrawRequest } from './questions.ts'
import type { TaskRecord } from './record.ts'
import { childrenOf, findTask, insertTask, lockTask, updateTask } from './store/tasks.ts'
import { isEnd, reviewerOf, type Task } from './task.ts'
import type { TaskMessages } from './task-messages.ts'
import type { TaskTimers } from './task-timers.ts'
import type { Validators } from './validation/validators.ts'

export interface ProgressOptions {
  messages: TaskMessages
  record: TaskRecord
  clocks: TaskTimers
  validators: Validators
  timers: Timers
  /** The time that the clocks of tasks go by. */
  now(tx: Tx): number
  settings(task: Task): TaskSettings
  /** After the commit. */
  perform(effect: Keyed<OutsideEffect>): void
  /** The task has ended while its worker was at it. After the commit, too. */
  cutShort(agent: string, task: string): void
  /** The task has ended. After the commit, too. */
  ended(task: Task): void
  /** What was ordered under that key is not needed any more. After the commit, too. */
  callOff(key: string): void
}

/** Loads a task, lets the core decide, stores what it says and carries out its effects: all in one transaction. */
export function createProgress(options: ProgressOptions) {
  const { messages, record, clocks, validators, timers, now, settings } = options
  const { perform, cutShort, callOff, ended } = options
  const breakers = createBreakers()

  /** Of a task that was read in this transaction; `words`: what an answer to the worker says, where somebody knows it better than the core. */
  async function tell(tx: Tx, told: string | Task, event: Happening, words?: string): Promise<Stepped> {
    // What was read without a lock may have changed since, where several daemons share the store.
    const isCertain = typeof told !== 'string' && tx.lockRow === ''
    const id = typeof told === 'string' ? told : told.id
    const task = isCertain ? told : await lockTask(tx, id)
    if (task === undefined) throw new Error(`there is no ${id}`)
    const decided = step(await viewOf(tx, task, event), event, settings(task))
    if (!decided.ok) return decided
    const stepped = { ...decided, task: validators.stamped(task, event.type, decided.task) }
    if (stepped.task.version !== task.version) {
      updateTask(tx, task, stepped.task)
      await follow(tx, task, event, words === undefined ? stepped : reworded(stepped, words))
    }
    return stepped
  }

  /** Both the new task and its parent's consent, or neither. */
  async function begin(tx: Tx, task: Task): Promise<{ ok: true; task: Task } | Refusal> {
    const event: Happening = { type: 'delegated' }
    const admitted = step(await viewOf(tx, task, event), event, settings(task))
    if (!admitted.ok) return admitted
    if (task.parent !== null) {
      const { id: child, requiresResponse, delegator: by } = task
      const told = await tell(tx, task.parent, { type: 'child_delegated', by, child, requiresResponse })
      if (!told.ok) return told
    }
    insertTask(tx, admitted.task)
    tx.audit(record.delegated(task))
    await follow(tx, task, event, admitted)
    return { ok: true, task: admitted.task }
  }

  /** The task is stored: what else the step says is written down and carried out. */
  async function follow(tx: Tx, before: Task, event: Happening, { task, effects }: Accepted) {
    const moved = record.moved(before, task, event)
    if (moved !== undefined) tx.audit(moved)
    for (const found of record.found(before, task)) tx.audit(found)
    if (isEnd(task.state) && !isEnd(before.state)) {
      await messages.withdraw(tx, task, `${task.id} has ended`)
      tx.afterCommit(() => ended(task))
      if (task.interrupts > before.interrupts) tx.afterCommit(() => cutShort(task.agent, task.id))
    }
    const reviewer = reviewerOf(before)
    if (reviewer !== null && reviewerOf(task) === null) await messages.withdrawReview(tx, before, reviewer)
    for (const effect of effects) {
      const done = carryOut(tx, task, event, effect)
      if (done !== undefined) await done
    }
    if (before.claim !== null) callOffIn(tx, before, task)
  }

  /** What the world outside owed to a claim, and does not any more. */
  function callOffIn(tx: Tx, before: Task, after: Task) {
    const owed = new Set(pendingEffects(after).map(({ key }) => key))
    for (const { key } of pendingEffects(before)) if (!owed.has(key)) tx.afterCommit(() => callOff(key))
  }

  /** Undefined where there is nothing to wait for. */
  function carryOut(tx: Tx, task: Task, event: Happening, effect: Effect): Promise<unknown> | undefined {
    switch (effect.type) {
      case 'send':
        return messages.send(tx, task, event, effect)
      case 'wake_parent':
        return messages.wakeParent(tx, task, effect)
      case 'ask_person':
        return askPerson(tx, timers, task, effect, record.cut)
      case 'withdraw':
        return withdraw(tx, task, event, effect)
      case 'set_timer':
        clocks.armed(tx, effect.at)
        return
      case 'clear_timer':
        clocks.disarmed(task.id, effect.kind)
        return
      case 'record_outcome':
        return breakers.record(tx, effect.agent, effect.outcome, settings(task).breaker)
      case 'tell':
        // Refused where it is late news to the relative.
        return tell(tx, effect.task, effect.event)
      case 'note':
        tx.audit(record.noted(task, effect.text))
        return
      case 'end':
      // What was approved is carried out by the verdict itself.
      case 'perform':
        return
      default:
        tx.afterCommit(() => perform(effect))
        return
    }
  }

  /** Whoever waits for a verdict on a held command hears that there will be none (C9). */
  async function withdraw(tx: Tx, task: Task, event: Happening, asked: Asked) {
    const held = await withdrawRequest(tx, task, asked)
    if (held === undefined) return
    const text = `${held.id} was withdrawn and not carried out, for what it was asked for has ended: ${held.question}`
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

  async function viewOf(tx: Tx, task: Task, event: Happening): Promise<View> {
    const isSent = event.type === 'delegated' || event.type === 'retry_due'
    return {
      now: now(tx),
      task,
      parent: task.parent === null ? null : ((await findTask(tx, task.parent)) ?? null),
      children: task.delegations === 0 ? [] : await childrenOf(tx, task.id),
      ancestors: event.type === 'delegated' && task.parent !== null ? await ancestorsOf(tx, task) : [],
      breaker: isSent ? await breakers.find(tx, task.agent) : CLOSED,
    }
  }

  return { tell, begin }
}

export type Progress = ReturnType<typeof createProgress>

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

function reworded(stepped: Accepted, text: string): Accepted {
  const effects = stepped.effects.map((effect) =>
    effect.type === 'send' && effect.kind === 'answer' ? { ...effect, text } : effect,
  )
  return { ...stepped, effects }
}
