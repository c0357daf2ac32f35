/** Decisions of the delegator or a person about a task. */
import { OPERATOR } from '../../../base/agent.ts'
import type { Task, TaskQuestion } from '../../task.ts'
import { refuse } from '../refusal.ts'
import { takeoverText } from '../wording.ts'
import { end, withdrawAll } from './ending.ts'
import { askPerson, openQuestion } from './questions.ts'
import { accept, sendToWorker, started, type TaskEventHandlers, updateState } from './task-changes.ts'

export const decisionHandlers: Pick<
  TaskEventHandlers,
  'followed_up' | 'settled' | 'cancelled' | 'taken_over'
> = {
  /** Answers a request for help, adds to a task at work, or returns one that was taken over. */
  followed_up(view, { text }) {
    const { task } = view
    if (task.followUps >= view.settings.maxFollowUps) {
      const message = `${task.id} was followed up ${task.followUps} times. End it, or delegate a new task.`
      return refuse('TOO_MANY', message)
    }
    const decided = task.questions.filter(({ kind }) => kind === 'help' || kind === 'takeover')
    const questions = task.questions.filter((question) => !decided.includes(question))
    const followed: Task = { ...task, questions, takenOver: false, followUps: task.followUps + 1 }
    const sent = sendToWorker(followed, 'follow_up', text)
    const timed = decided.length > 0 ? { ...sent.task, remainingMs: task.timeoutMs } : sent.task
    const withdraw = withdrawAll({ ...task, questions: decided })
    return accept(updateState(view, timed), ...withdraw, sent.effect)
  },

  /** An agent accepts a claim only after validation left it to the delegator (C22). A person may always accept. */
  settled(view, { as, reason, by }) {
    const isLeftToDelegator = view.task.questions.some(({ kind }) => kind === 'help')
    if (as === 'completed' && by !== OPERATOR && !isLeftToDelegator) {
      const message = `You cannot accept ${view.task.id}: it completes when its report has passed validation`
      return refuse('UNDER_VALIDATION', message)
    }
    return end(view, view.task, { state: as, reason, by })
  },

  cancelled(view, { reason, by }) {
    return end(view, view.task, { state: 'cancelled', reason, by })
  },

  /** Stops the agent and drops its questions; the person reports instead. */
  taken_over(view) {
    const { task } = view
    if (task.takenOver) return refuse('DUPLICATE', `${task.id} was already taken over`)
    const isInTurn = task.state === 'executing' && task.claim === null
    const id = `${task.id}/takeover/${task.version}`
    const text = takeoverText(task)
    const question: TaskQuestion = { id, kind: 'takeover', to: OPERATOR, text, expiresAt: null }
    const taken: Task = {
      ...started(view, task),
      takenOver: true,
      claim: null,
      due: null,
      questions: [],
      unread: false,
      interrupts: task.interrupts + (isInTurn ? 1 : 0),
      interrupting: task.interrupting || isInTurn,
    }
    return accept(
      openQuestion(view, taken, question),
      ...withdrawAll(task),
      {
        type: 'send',
        kind: 'cancelled',
        to: task.agent,
        task: task.id,
        text: 'A person took it over.',
        wake: false,
      },
      askPerson(view, question, 'input', 'taken over'),
    )
  },
}
