import { OPERATOR } from '../../../base/agent.ts'
import type { Task } from '../../task.ts'
import type { SendKind, StoreEffect } from '../effect.ts'
import { workerOf } from './outcome.ts'

interface Sent {
  task: Task
  effect: StoreEffect
}

/** Something new for whoever works on the task. It is unread until the runtime takes it, and starts a stopped agent. */
export function sendToWorker(task: Task, kind: SendKind, text: string, inReplyTo?: string): Sent {
  const reply = inReplyTo === undefined ? {} : { inReplyTo }
  const to = workerOf(task)
  const effect = { type: 'send', kind, to, task: task.id, text, wake: true, ...reply } as const
  return { task: withMail(task, kind === 'reminder'), effect }
}

/** A reminder is no new start: the count of reminders goes on. */
export function withMail(task: Task, isReminder: boolean): Task {
  const reminders = isReminder ? task.reminders : 0
  if (workerOf(task) === OPERATOR) return { ...task, reminders }
  return { ...task, reminders, sent: task.sent + 1, unread: true }
}
