import { OPERATOR, ORCHESTRATOR } from '../../../base/agent.ts'
import type { EndState, Task } from '../../task.ts'
import type { SendKind, StoreEffect } from '../effect.ts'
import type { View } from '../view.ts'
import { outcomeText } from '../wording.ts'
import { type Done, done, moved, parentIsOpen } from './outcome.ts'

interface Ending {
  state: EndState
  reason: string
  /** Who decided it: the worker by its report, the delegator, a person, or the service. */
  by: string
  /** A person is told (C7). */
  escalate?: boolean
}

const KIND_OF: Record<EndState, SendKind> = {
  completed: 'report',
  failed: 'failed',
  cancelled: 'cancelled',
  skipped: 'cancelled',
}

/** The one way out: everyone concerned is told, open questions are withdrawn, descendants follow. */
export function end(view: View, task: Task, { state, reason, by, escalate = false }: Ending): Done {
  const isInTurn = task.state === 'executing' && task.claim === null && by !== task.agent && !task.takenOver
  const ended: Task = {
    ...moved(task, state),
    endedAt: view.now,
    reason,
    due: null,
    claim: null,
    questions: [],
    awaiting: [],
    unread: false,
    held: null,
    interrupts: task.interrupts + (isInTurn ? 1 : 0),
    interrupting: task.interrupting || isInTurn,
  }
  return done(
    ended,
    ...withdrawAll(task),
    ...tellWorker(ended, by),
    // A person that is asked need not be told as well.
    ...(escalate && task.delegator === OPERATOR ? [] : tellDelegator(view, ended, by)),
    ...(escalate ? [escalation(ended)] : []),
    { type: 'end', task: task.id, state, reason },
  )
}

/** Questions that a person still has before them. An agent's late answer is refused when it comes. */
export function withdrawAll({ id, questions }: Task): StoreEffect[] {
  return questions
    .filter(({ to }) => to === OPERATOR)
    .map((question) => ({ type: 'withdraw', task: id, question: question.id }))
}

function tellWorker(task: Task, by: string): StoreEffect[] {
  if (by === task.agent || task.sent === 0 || task.takenOver) return []
  const text = outcomeText(task)
  return [{ type: 'send', kind: 'cancelled', to: task.agent, task: task.id, text, wake: false }]
}

/** A parent that waits for others as well reads it when it is woken; a failure it should know at once. */
function tellDelegator(view: View, task: Task, by: string): StoreEffect[] {
  const parentDecided = view.parent !== null && !parentIsOpen(view)
  if (by === task.delegator || (parentDecided && by === ORCHESTRATOR && task.state === 'cancelled')) return []
  const kind = KIND_OF[task.state as EndState]
  const wake = task.state === 'failed' || !parentIsOpen(view)
  return [{ type: 'send', kind, to: task.delegator, task: task.id, text: outcomeText(task), wake }]
}

function escalation(task: Task): StoreEffect {
  return {
    type: 'ask_person',
    kind: 'escalation',
    task: task.id,
    question: `${task.id}/escalation`,
    text: outcomeText(task),
    reason: task.reason!,
    awaits: false,
    expiresAt: null,
  }
}
