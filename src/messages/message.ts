export const PRIORITIES = ['low', 'normal', 'high', 'urgent'] as const
export type Priority = (typeof PRIORITIES)[number]

/** How far a message has come. Each state is stored with its evidence (C27). */
export const DELIVERY_STATES = ['queued', 'written', 'submitted', 'read', 'uncertain', 'failed'] as const
export type DeliveryState = (typeof DELIVERY_STATES)[number]

/** An accepted message. It never changes; its delivery records what happens to it. */
export interface Message {
  id: string
  from: string
  to: string
  title: string
  content: string
  priority: Priority
  inReplyTo?: string
  /** Shared by all messages that follow from one first message; the loop breaker counts along it. */
  correlationId: string
  hop: number
  at: string
  /** The task that the message is about, and its role there. */
  task?: { id: string; kind: TaskMessageKind }
}

export const TASK_MESSAGE_KINDS = [
  'delegate',
  'follow_up',
  'reminder',
  'answer',
  'query',
  'extension',
  'report',
  /** A report that leaves the decision to the delegator. */
  'partial',
  'needs_help',
  'failed',
  'cancelled',
  /** A claim is to be judged. */
  'review',
  /** All delegated tasks have ended. */
  'children_ended',
] as const
export type TaskMessageKind = (typeof TASK_MESSAGE_KINDS)[number]
