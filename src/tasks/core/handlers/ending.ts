import { OPERATOR, ORCHESTRATOR } from '../../../base/agent.ts'
import type { EndState, Task } from '../../task.ts'
import type { SendKind, TaskStoreEffect } from '../effect.ts'
import type { TaskView } from '../view.ts'
import { outcomeText } from '../wording.ts'
import { type Accepted, accept, isParentOpen, moveTo } from './task-changes.ts'

interface TaskEnding {
  state: EndState
  reason: string
  /** The worker by its report, the delegator, a person, or the service. */
  by: string
  /** Notifies a person (C7). */
  escalate?: boolean
}

const KIND_OF: Record<EndState, SendKind> = {
  completed: 'report',
  failed: 'failed',
  cancelled: 'cancelled',
  skipped: 'cancelled',
}

/** Every end goes through here: it notifies worker and delegator, withdraws open questions, and ends descendants. */
export function end(
  view: TaskView,
  task: Task,
  { state, reason, by, escalate = false }: TaskEnding,
): Accepted {
  const isInTurn = task.state === 'executing' && task.claim === null && by !== task.agent && !task.takenOver
  const ended: Task = {
    ...moveTo(task, state),
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
  return accept(
    ended,
    ...withdrawAll(task),
    ...notifyWorker(ended, by),
    // The escalation already reaches a person who delegated.
    ...(escalate && task.delegator === OPERATOR ? [] : notifyDelegator(view, ended, by)),
    ...(escalate ? [escalation(ended)] : []),
    { type: 'end', task: task.id, state, reason },
  )
}

/** Withdraws open requests to people. A late answer of an agent is refused when it arrives. */
export function withdrawAll({ id, questions }: Task): TaskStoreEffect[] {
  return questions
    .filter(({ to }) => to === OPERATOR)
    .map((question) => ({ type: 'withdraw', task: id, question: question.id }))
}

function notifyWorker(task: Task, by: string): TaskStoreEffect[] {
  if (by === task.agent || task.sent === 0 || task.takenOver) return []
  const text = outcomeText(task)
  return [{ type: 'send', kind: 'cancelled', to: task.agent, task: task.id, text, wake: false }]
}

/** A failure wakes the delegator. Other results wait until all children of its own task have ended. */
function notifyDelegator(view: TaskView, task: Task, by: string): TaskStoreEffect[] {
  const hasParentEnded = view.parent !== null && !isParentOpen(view)
  if (by === task.delegator || (hasParentEnded && by === ORCHESTRATOR && task.state === 'cancelled'))
    return []
  const kind = KIND_OF[task.state as EndState]
  const wake = task.state === 'failed' || !isParentOpen(view)
  return [{ type: 'send', kind, to: task.delegator, task: task.id, text: outcomeText(task), wake }]
}

function escalation(task: Task): TaskStoreEffect {
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
