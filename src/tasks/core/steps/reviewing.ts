/** An agent that judges: asked by a message, reminded like any worker, and not waited for for ever. */
import type { Review, Task } from '../../task.ts'
import type { TaskSettings } from '../settings.ts'
import type { View } from '../view.ts'
import { forgotToJudgeText, reviewReminderText, reviewText } from '../wording.ts'
import { giveUp } from './claims.ts'
import { type Done, done, type Handlers, refuse } from './outcome.ts'
import { settle } from './resting.ts'

export function askReviewer(view: View, task: Task, settings: TaskSettings): Done {
  return ask(view, task, reviewText(task), 0, settings)
}

function ask(view: View, task: Task, text: string, reminders: number, settings: TaskSettings): Done {
  const asked = withReview(task, { taken: false, reminders })
  const to = task.judge!.name
  const effect = { type: 'send', kind: 'review', to, task: task.id, text, wake: true } as const
  return done(settle(view, asked, settings), effect)
}

function withReview(task: Task, review: Review): Task {
  return { ...task, claim: { ...task.claim!, review } }
}

const notAsked = (task: Task) => refuse('STALE', `${task.id} waits for no judgement of an agent`)

export const reviewing: Pick<Handlers, 'review_taken' | 'review_turn_ended' | 'review_lost'> = {
  review_taken({ task }) {
    const review = task.claim?.review
    if (review === undefined) return notAsked(task)
    if (review.taken) return refuse('DUPLICATE', `${task.id} was taken for review already`)
    return done(withReview(task, { ...review, taken: true }))
  },

  /** It ended a turn that it had the claim in, and did not judge it. */
  review_turn_ended(view, { lastWords }, settings) {
    const { task } = view
    const review = task.claim?.review
    if (review === undefined) return notAsked(task)
    if (!review.taken) return done(task)
    if (review.reminders < settings.maxReminders) {
      return ask(view, task, reviewReminderText(task), review.reminders + 1, settings)
    }
    return giveUp(view, forgotToJudgeText(task, review.reminders, lastWords), settings)
  },

  review_lost(view, { why }, settings) {
    const { task } = view
    if (task.claim?.review === undefined) return notAsked(task)
    return giveUp(view, `${task.judge!.name} cannot judge it: ${why}`, settings)
  },
}
