/** Decisions of the delegator or a person about a task, and events of its parent and children. */
import { OPERATOR, ORCHESTRATOR } from '../../base/agent.ts'
import { isEnd, type Task, type TaskQuestion } from '../task.ts'
import type { TaskStoreEffect } from './events-and-effects.ts'
import { takeoverText, wakeText } from './message-texts.ts'
import { askPerson, openQuestion, underValidation } from './questions.ts'
import { refuse } from './refusal.ts'
import { allEnded, type TaskSnapshot } from './snapshot.ts'
import {
  accept,
  end,
  isParentOpen,
  sendToWorker,
  started,
  type TaskEventHandlers,
  updateState,
  withdrawAll,
  withUnread,
  workerOf,
} from './task-changes.ts'

export const decisionHandlers: Pick<
  TaskEventHandlers,
  'followed_up' | 'settled' | 'cancelled' | 'taken_over'
> = {
  /** Answers a request for help, adds to a task at work, or returns one that was taken over. */
  followed_up(snapshot, { text }) {
    const { task } = snapshot
    if (task.followUps >= snapshot.settings.maxFollowUps) {
      const message = `${task.id} was followed up ${task.followUps} times. End it, or delegate a new task.`
      return refuse('TOO_MANY', message)
    }
    const decided = task.questions.filter(({ kind }) => kind === 'help' || kind === 'takeover')
    const questions = task.questions.filter((question) => !decided.includes(question))
    const followed: Task = { ...task, questions, takenOver: false, followUps: task.followUps + 1 }
    const sent = sendToWorker(followed, 'follow_up', text)
    const timed = decided.length > 0 ? { ...sent.task, remainingMs: task.timeoutMs } : sent.task
    return accept(updateState(snapshot, timed), ...withdrawAll(decided), sent.effect)
  },

  /** An agent accepts a claim only after validation left it to the delegator (C22). A person may always accept. */
  settled(snapshot, { as, reason, by }) {
    const isLeftToDelegator = snapshot.task.questions.some(({ kind }) => kind === 'help')
    if (as === 'completed' && by !== OPERATOR && !isLeftToDelegator) {
      const message = `You cannot accept ${snapshot.task.id}: it completes when its report has passed validation`
      return refuse('UNDER_VALIDATION', message)
    }
    return end(snapshot, snapshot.task, { state: as, reason, by })
  },

  cancelled(snapshot, { reason, by }) {
    return end(snapshot, snapshot.task, { state: 'cancelled', reason, by })
  },

  /** Stops the agent and drops its questions; the person reports instead. */
  taken_over(snapshot) {
    const { task } = snapshot
    if (task.takenOver) return refuse('DUPLICATE', `${task.id} was already taken over`)
    const isInTurn = task.state === 'executing' && task.claim === null
    const id = `${task.id}/takeover/${task.version}`
    const text = takeoverText(task)
    const question: TaskQuestion = { id, kind: 'takeover', to: OPERATOR, text, expiresAt: null }
    const taken: Task = {
      ...started(snapshot, task),
      takenOver: true,
      claim: null,
      due: null,
      questions: [],
      unread: false,
      interrupts: task.interrupts + (isInTurn ? 1 : 0),
      interrupting: task.interrupting || isInTurn,
    }
    return accept(
      openQuestion(snapshot, taken, question),
      ...withdrawAll(task.questions),
      { type: 'send', kind: 'cancelled', to: task.agent, text: 'A person took it over.', wake: false },
      askPerson(snapshot, question, 'input', 'taken over'),
    )
  },
}

/** Events between a task, its parent and its children. */
export const relativeHandlers: Pick<TaskEventHandlers, 'child_delegated' | 'child_changed' | 'parent_ended'> =
  {
    child_delegated(snapshot, { child, requiresResponse }) {
      const { task } = snapshot
      if (task.seen.includes(child)) return refuse('DUPLICATE', `${child} was already delegated`)
      if (task.claim !== null) return underValidation(task)
      if (task.delegations >= snapshot.settings.maxDelegations) {
        const message = `${task.id} has delegated ${task.delegations} times. Report what you have.`
        return refuse('TOO_MANY', message)
      }
      const delegated: Task = {
        ...started(snapshot, task),
        seen: [...task.seen, child],
        delegations: task.delegations + 1,
        awaiting: requiresResponse ? [...task.awaiting, child] : task.awaiting,
      }
      return accept(updateState(snapshot, delegated))
    },

    /** Wakes the parent once, when all awaited children have ended in any way, whatever its own state. */
    child_changed(snapshot) {
      const { task, children } = snapshot
      const { awaiting } = task
      if (awaiting.length === 0 || !allEnded(awaiting, children)) return accept(updateState(snapshot, task))
      const ended = children.filter(({ id }) => awaiting.includes(id))
      const woken = withUnread({ ...task, awaiting: [] }, false)
      const text = wakeText(task, ended)
      const effect = { type: 'send', kind: 'children_ended', to: workerOf(task), text, wake: true } as const
      return accept(updateState(snapshot, woken), effect)
    },

    /** A cancellation reaches every descendant. After another end, a child without requires_response may finish. */
    parent_ended(snapshot, { as, reason }) {
      const { task } = snapshot
      if (as !== 'cancelled' && !task.requiresResponse) return accept(task)
      const why =
        as === 'cancelled'
          ? `${task.parent} was cancelled: ${reason}`
          : `${task.parent} ended (${as}) without waiting for it`
      return end(snapshot, task, { state: 'cancelled', reason: why, by: ORCHESTRATOR })
    },
  }

/** Children learn that the task ended. The parent also learns when the task starts or stops waiting for it. */
export function notifyRelatives(snapshot: TaskSnapshot, after: Task): TaskStoreEffect[] {
  const before = snapshot.task
  const hasEnded = isEnd(after.state) && !isEnd(before.state)
  const changesWait = (after.state === 'waiting_parent') !== (before.state === 'waiting_parent')
  return [
    ...(hasEnded ? notifyChildren(snapshot, after) : []),
    ...(hasEnded || changesWait ? notifyParent(snapshot) : []),
  ]
}

function notifyParent(snapshot: TaskSnapshot): TaskStoreEffect[] {
  if (snapshot.parent === null || !isParentOpen(snapshot)) return []
  const event = { type: 'child_changed', child: snapshot.task.id } as const
  return [{ type: 'dispatch', task: snapshot.parent.id, event }]
}

/** A cancellation also passes through ended children, to descendants that outlived them. */
export function notifyChildren({ children }: TaskSnapshot, { state, reason }: Task): TaskStoreEffect[] {
  if (!isEnd(state)) return []
  const event = { type: 'parent_ended', as: state, reason: reason ?? '' } as const
  return children
    .filter((child) => !isEnd(child.state) || (state === 'cancelled' && child.delegations > 0))
    .map(({ id }) => ({ type: 'dispatch', task: id, event }))
}
