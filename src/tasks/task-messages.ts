import { OPERATOR, ORCHESTRATOR } from '../base/agent.ts'
import type { RedactedExcerpt } from '../base/excerpt.ts'
import { formatId, parseId } from '../base/ids.ts'
import type { Mailboxes } from '../messages/mailboxes.ts'
import type { TaskMessageKind } from '../messages/message.ts'
import { moveDeliveries, wasGiven, withdrawQueued } from '../messages/store/deliveries.ts'
import { firstOfTask, insertMessage } from '../messages/store/messages.ts'
import type { Tx } from '../store/store.ts'
import type { StoreEffect } from './core/effect.ts'
import { byOf, type Happening } from './core/event.ts'
import type { Task } from './task.ts'

type Send = Extract<StoreEffect, { type: 'send' }>
type WakeParent = Extract<StoreEffect, { type: 'wake_parent' }>

export interface MessagesOptions {
  mailboxes: Mailboxes
  cut: RedactedExcerpt
  /** After the commit: an agent that is not running may have to be started. */
  wake(agent: string): void
}

const TITLE = 80

const WORDS: Partial<Record<TaskMessageKind, string>> = {
  follow_up: 'go on',
  reminder: 'still open',
  answer: 'an answer',
  extension: 'more time is asked for',
  report: 'completed',
  partial: 'partly done',
  needs_help: 'needs help',
  review: 'is to be judged',
  failed: 'failed',
  cancelled: 'ended',
  children_ended: 'all that was delegated has ended',
}

/** What tasks have to say becomes messages, in the transaction of the step that says it. */
export function createMessages({ mailboxes, cut, wake }: MessagesOptions) {
  async function send(tx: Tx, task: Task, event: Happening, effect: Send) {
    const kind = kindOf(effect)
    // A new attempt takes the place of what was sent and never read.
    if (kind === 'delegate' && task.attempt > 1) await withdraw(tx, task, 'a new attempt takes its place')
    // Whoever never heard of the task need not hear of its end.
    if (kind === 'cancelled' && effect.to === task.agent && !(await wasGiven(tx, effect.to, keyOf(task))))
      return
    const ownKey = kind === 'answer' ? undefined : keyIn(effect.inReplyTo)
    const answered = kind === 'answer' ? keyIn(effect.inReplyTo) : undefined
    await post(tx, task, {
      from: senderOf(task, event, effect),
      to: effect.to,
      kind,
      text: kind === 'delegate' ? withContext(effect.text, task) : effect.text,
      quiet: !effect.wake,
      key: ownKey,
      inReplyTo: answered,
    })
  }

  async function wakeParent(tx: Tx, task: Task, { to, text }: WakeParent) {
    await post(tx, task, { from: ORCHESTRATOR, to, kind: 'children_ended', text, quiet: false })
  }

  interface Post {
    from: string
    to: string
    kind: TaskMessageKind
    text: string
    quiet: boolean
    key?: number | undefined
    inReplyTo?: number | undefined
  }

  async function post(tx: Tx, task: Task, { from, to, kind, text, quiet, key, inReplyTo }: Post) {
    const title = titleOf(task, kind, text)
    const isFirst = kind === 'delegate' && task.attempt === 1
    // All messages of a tree are one conversation, which its first one begins.
    const correlation =
      isFirst && task.parent === null ? undefined : await firstOfTask(tx, parseId('task', task.root)!)
    const priority = quiet ? 'low' : 'normal'
    const stored = await insertMessage(tx, {
      from,
      to,
      title: shortened(title),
      content: text,
      priority,
      // What its worker is told led from there; what comes back is a reply to that.
      hop: to === task.agent ? task.hop : task.hop + 1,
      task: { key: keyOf(task), kind, quiet },
      key,
      inReplyTo,
      correlation,
    })
    const id = formatId('msg', stored.key)
    tx.audit({
      type: 'message.accepted',
      class: 'internal',
      actor: from,
      subject: to,
      text: cut(title, TITLE),
      data: {
        message_id: id,
        task_id: task.id,
        root: task.root,
        kind,
        priority,
        excerpt: cut(text),
        digest: stored.digest,
      },
    })
    if (to === OPERATOR) {
      // People read it with the task; they have no mailbox that it could wait in.
      await moveDeliveries(tx, to, [stored.key], 'read', 'kept with the task')
      return
    }
    if (quiet) return
    await mailboxes.accepted(tx, to, priority, from)
    tx.afterCommit(() => wake(to))
  }

  /** What the worker has not been given yet, it need not be given any more. */
  async function withdraw(tx: Tx, task: Task, evidence: string) {
    const keys = await withdrawQueued(tx, task.agent, keyOf(task), evidence)
    noteWithdrawn(tx, task.agent, keys, evidence)
  }

  /** The same for an agent that was to judge a claim of the task. */
  async function withdrawReview(tx: Tx, task: Task, reviewer: string) {
    const evidence = `${task.id} waits for no judgement any more`
    const keys = await withdrawQueued(tx, reviewer, keyOf(task), evidence, 'review')
    noteWithdrawn(tx, reviewer, keys, evidence)
  }

  function noteWithdrawn(tx: Tx, agent: string, keys: readonly number[], evidence: string) {
    for (const key of keys) {
      const id = formatId('msg', key)
      tx.audit({
        type: 'delivery.failed',
        class: 'internal',
        actor: ORCHESTRATOR,
        subject: agent,
        text: `${id} is failed: ${evidence}`,
        data: { message_id: id, state: 'failed', evidence },
      })
    }
  }

  return { send, wakeParent, withdraw, withdrawReview }
}

export type TaskMessages = ReturnType<typeof createMessages>

function keyOf(task: Task): number {
  return parseId('task', task.id)!
}

function keyIn(id: string | undefined): number | undefined {
  return id === undefined ? undefined : parseId('msg', id)
}

function kindOf({ kind, inReplyTo }: Send): TaskMessageKind {
  return kind === 'report' && inReplyTo !== undefined ? 'partial' : kind
}

/** In whose name: what a step decided by itself is the service's word. */
function senderOf(task: Task, event: Happening, { kind }: Send): string {
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
      return ORCHESTRATOR
    case 'answer':
    case 'follow_up':
    case 'failed':
    case 'cancelled':
      return saidBy(event) ?? ORCHESTRATOR
  }
}

const DECISIONS: ReadonlySet<Happening['type']> = new Set([
  'query_answered',
  'user_answered',
  'approval_decided',
  'extension_granted',
  'extension_refused',
  'followed_up',
  'settled',
  'cancelled',
  'taken_over',
])

function saidBy(event: Happening): string | undefined {
  return DECISIONS.has(event.type) ? byOf(event) : undefined
}

function titleOf(task: Task, kind: TaskMessageKind, text: string): string {
  const words = WORDS[kind]
  return words === undefined ? firstLine(text) : `${task.id} ${words}: ${firstLine(task.text)}`
}

function shortened(title: string): string {
  return title.length <= TITLE ? title : [...title.slice(0, TITLE * 2)].slice(0, TITLE).join('')
}

function firstLine(text: string): string {
  const start = text.trimStart()
  const end = start.indexOf('\n')
  return (end === -1 ? start : start.slice(0, end)).trimEnd()
}

function withContext(text: string, { context, resultSchema }: Task): string {
  const parts = [text]
  if (resultSchema !== null) {
    parts.push(`Report as result nothing but JSON that fits this schema:\n${JSON.stringify(resultSchema)}`)
  }
  if (Object.keys(context).length > 0) parts.push(`Context:\n${JSON.stringify(context, null, 2)}`)
  return parts.join('\n\n')
}
