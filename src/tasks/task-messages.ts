import { OPERATOR, ORCHESTRATOR } from '../base/agent.ts'
import type { RedactedExcerpt } from '../base/excerpt.ts'
import { parseId } from '../base/ids.ts'
import { wasGiven, withdrawQueued } from '../messages/delivery-states.ts'
import type { Mailboxes } from '../messages/mailboxes.ts'
import type { TaskMessageKind } from '../messages/message.ts'
import { firstOfTask } from '../messages/messages.ts'
import type { Tx } from '../store/store.ts'
import { senderOf, type TaskEvent, type TaskStoreEffect } from './core/events-and-effects.ts'
import type { Task } from './task.ts'

type SendEffect = Extract<TaskStoreEffect, { type: 'send' }>

interface TaskMessagesOptions {
  mailboxes: Mailboxes
  cut: RedactedExcerpt
  /** Called after the commit, to start an agent that isn't running. */
  wake(agent: string): void
}

const MAX_TITLE = 80

const TITLES: Partial<Record<TaskMessageKind, string>> = {
  follow_up: 'follow-up',
  reminder: 'still open',
  answer: 'answer',
  extension: 'requests more time',
  report: 'completed',
  partial: 'partly done',
  needs_help: 'needs help',
  review: 'needs your judgement',
  failed: 'failed',
  cancelled: 'ended',
  children_ended: 'all delegated tasks have ended',
}

/** Stores the messages of tasks, in the transaction of the event that sends them. */
export function createTaskMessages({ mailboxes, cut, wake }: TaskMessagesOptions) {
  async function send(tx: Tx, task: Task, event: TaskEvent, effect: SendEffect) {
    const kind = kindOf(effect)
    // Unread messages of the previous attempt are obsolete.
    if (kind === 'delegate' && task.attempt > 1) await withdraw(tx, task, 'replaced by a new attempt')
    // A worker that never received the task doesn't need to know its end.
    if (kind === 'cancelled' && effect.to === task.agent && !(await wasGiven(tx, effect.to, keyOf(task))))
      return
    const ownKey = kind === 'answer' ? undefined : keyIn(effect.inReplyTo)
    const answered = kind === 'answer' ? keyIn(effect.inReplyTo) : undefined
    await post(tx, task, {
      from: fromOf(task, event, effect),
      to: effect.to,
      kind,
      text: kind === 'delegate' ? withContext(effect.text, task) : effect.text,
      quiet: !effect.wake,
      key: ownKey,
      inReplyTo: answered,
    })
  }

  interface TaskMessage {
    from: string
    to: string
    kind: TaskMessageKind
    text: string
    quiet: boolean
    key?: number | undefined
    inReplyTo?: number | undefined
  }

  async function post(tx: Tx, task: Task, { from, to, kind, text, quiet, key, inReplyTo }: TaskMessage) {
    const title = titleOf(task, kind, text)
    const isFirst = kind === 'delegate' && task.attempt === 1
    // All messages of a tree form one conversation, started by the first delegation.
    const correlation =
      isFirst && task.parent === null ? undefined : await firstOfTask(tx, parseId('task', task.root)!)
    const message = {
      from,
      to,
      title: shortened(title),
      content: text,
      priority: quiet ? 'low' : 'normal',
      // A message to anyone but the worker counts as a reply to the task.
      hop: to === task.agent ? task.hop : task.hop + 1,
      task: { key: keyOf(task), kind, quiet },
      key,
      inReplyTo,
      correlation,
    } as const
    await mailboxes.send(tx, message, {
      text: cut(title, MAX_TITLE),
      data: { task_id: task.id, root: task.root, kind, excerpt: cut(text) },
    })
    if (to !== OPERATOR && !quiet) tx.afterCommit(() => wake(to))
  }

  /** Withdraws messages that the worker hasn't received yet. */
  async function withdraw(tx: Tx, task: Task, evidence: string) {
    await withdrawQueued(tx, task.agent, keyOf(task), evidence)
  }

  /** Withdraws the message to the agent that was asked to judge. */
  async function withdrawReview(tx: Tx, task: Task, reviewer: string) {
    await withdrawQueued(tx, reviewer, keyOf(task), `${task.id} no longer needs a judgement`, 'review')
  }

  return { send, withdraw, withdrawReview }
}

export type TaskMessages = ReturnType<typeof createTaskMessages>

function keyOf(task: Task): number {
  return parseId('task', task.id)!
}

function keyIn(id: string | undefined): number | undefined {
  return id === undefined ? undefined : parseId('msg', id)
}

function kindOf({ kind, inReplyTo }: SendEffect): TaskMessageKind {
  return kind === 'report' && inReplyTo !== undefined ? 'partial' : kind
}

/** The service is the sender of everything that no agent or person wrote. */
function fromOf(task: Task, event: TaskEvent, { kind }: SendEffect): string {
  switch (kind) {
    case 'delegate':
      return task.delegator
    case 'query':
    case 'extension':
    case 'report':
      return task.agent
    case 'needs_help':
      return event.type === 'reported' ? task.agent : ORCHESTRATOR
    case 'reminder':
    case 'review':
    case 'children_ended':
      return ORCHESTRATOR
    case 'answer':
    case 'follow_up':
    case 'failed':
    case 'cancelled':
      return (DECISIONS.has(event.type) ? senderOf(event) : undefined) ?? ORCHESTRATOR
  }
}

const DECISIONS: ReadonlySet<TaskEvent['type']> = new Set([
  'answered',
  'approval_decided',
  'extension_granted',
  'extension_refused',
  'followed_up',
  'settled',
  'cancelled',
  'taken_over',
])

function titleOf(task: Task, kind: TaskMessageKind, text: string): string {
  const words = TITLES[kind]
  return words === undefined ? firstLine(text) : `${task.id} ${words}: ${firstLine(task.text)}`
}

function shortened(title: string): string {
  return title.length <= MAX_TITLE ? title : [...title.slice(0, MAX_TITLE * 2)].slice(0, MAX_TITLE).join('')
}

function firstLine(text: string): string {
  const start = text.trimStart()
  const end = start.indexOf('\n')
  return (end === -1 ? start : start.slice(0, end)).trimEnd()
}

function withContext(text: string, { context, resultSchema }: Task): string {
  const parts = [text]
  if (resultSchema !== null) {
    parts.push(`As the result, report only JSON that fits this schema:\n${JSON.stringify(resultSchema)}`)
  }
  if (Object.keys(context).length > 0) parts.push(`Context:\n${JSON.stringify(context, null, 2)}`)
  return parts.join('\n\n')
}
