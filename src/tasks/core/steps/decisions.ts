/** What the delegator or a person decides about a task. */
import { OPERATOR } from '../../../base/agent.ts'
import type { Question, Task } from '../../task.ts'
import { takeoverText } from '../wording.ts'
import { askPerson, open } from './asking.ts'
import { end, withdrawAll } from './ending.ts'
import { done, type Handlers, refuse } from './outcome.ts'
import { begun, settle } from './resting.ts'
import { sendToWorker } from './worker.ts'

export const decisions: Pick<Handlers, 'followed_up' | 'settled' | 'cancelled' | 'taken_over'> = {
  /** Decides on a task that needs help, adds to one at work, or gives back one that was taken over. */
  followed_up(view, { text }, settings) {
    const { task } = view
    if (task.followUps >= settings.maxFollowUps) {
      const message = `${task.id} was followed up ${task.followUps} times. End it, or delegate anew.`
      return refuse('TOO_MANY', message)
    }
    const decided = task.questions.filter(({ kind }) => kind === 'help' || kind === 'takeover')
    const questions = task.questions.filter((question) => !decided.includes(question))
    const followed: Task = { ...task, questions, takenOver: false, followUps: task.followUps + 1 }
    const sent = sendToWorker(followed, 'follow_up', text)
    const rested = decided.length > 0 ? { ...sent.task, remainingMs: task.timeoutMs } : sent.task
    const withdraw = withdrawAll({ ...task, questions: decided })
    return done(settle(view, rested, settings), ...withdraw, sent.effect)
  },

  /** A claim is accepted by an agent only once it is left to it; before that, validation decides (C22). A person's word needs none. */
  settled(view, { as, reason, by }) {
    const isLeftToIt = view.task.questions.some(({ kind }) => kind === 'help')
    if (as === 'completed' && by !== OPERATOR && !isLeftToIt) {
      const message = `${view.task.id} is not yours to accept: it is done when its report has passed validation`
      return refuse('UNDER_VALIDATION', message)
    }
    return end(view, view.task, { state: as, reason, by })
  },

  cancelled(view, { reason, by }) {
    return end(view, view.task, { state: 'cancelled', reason, by })
  },

  /** The agent is stopped and the person reports instead. What the agent asked is moot. */
  taken_over(view, _, settings) {
    const { task } = view
    if (task.takenOver) return refuse('DUPLICATE', `${task.id} was taken over already`)
    const isInTurn = task.state === 'executing' && task.claim === null
    const id = `${task.id}/takeover/${task.version}`
    const text = takeoverText(task)
    const question: Question = { id, kind: 'takeover', to: OPERATOR, text, expiresAt: null }
    const taken: Task = {
      ...begun(view, task),
      takenOver: true,
      claim: null,
      due: null,
      questions: [],
      unread: false,
      interrupts: task.interrupts + (isInTurn ? 1 : 0),
      interrupting: task.interrupting || isInTurn,
    }
    return done(
      open(view, taken, question, settings),
      ...withdrawAll(task),
      {
        type: 'send',
        kind: 'cancelled',
        to: task.agent,
        task: task.id,
        text: 'A person took it over.',
        wake: false,
      },
      askPerson(view, question, 'input', 'taken over', settings),
    )
  },
}
