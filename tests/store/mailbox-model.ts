import { PRIORITIES, type Priority } from '../../src/messages/message.ts'
import type { MailboxFilter } from '../../src/messages/messages.ts'

export interface ModelMail {
  key: number
  to: string
  content: string
  priority: Priority
  state: 'queued' | 'written' | 'read'
  attempts: number
  until: number | undefined
}

/** A minimal model of mailboxes: the store must behave like it. */
export interface MailboxModel {
  /** Each move of a delivery has an audit entry. */
  moves: number
  now: number
  mails: ModelMail[]
}

const isOpen = (mail: ModelMail) => mail.state !== 'read'

export function boxOf(model: MailboxModel, agent: string): ModelMail[] {
  return model.mails.filter((mail) => mail.to === agent)
}

export function query(
  model: MailboxModel,
  agent: string,
  filter: MailboxFilter,
  page: { after: number; limit: number },
): ModelMail[] {
  return boxOf(model, agent)
    .filter((mail) => filter === 'all' || mail.state === 'queued')
    .filter((mail) => filter !== 'urgent' || mail.priority === 'urgent')
    .filter((mail) => mail.key > page.after)
    .slice(0, page.limit)
}

export function claim(
  model: MailboxModel,
  agent: string,
  { limit, byPriority, waitMs }: { limit: number; byPriority: boolean; waitMs: number },
): ModelMail[] {
  const rank = (mail: ModelMail) => (byPriority ? -PRIORITIES.indexOf(mail.priority) : 0)
  const claimed = query(model, agent, 'unread', { after: 0, limit: Infinity })
    .sort((a, b) => rank(a) - rank(b) || a.key - b.key)
    .slice(0, limit)
  for (const mail of claimed) {
    mail.state = 'written'
    mail.attempts++
    mail.until = model.now + waitMs
  }
  return claimed
}

export function acknowledge(model: MailboxModel, agent: string, keys: readonly number[]): number[] {
  const moved = boxOf(model, agent).filter((mail) => keys.includes(mail.key) && isOpen(mail))
  for (const mail of moved) {
    mail.state = 'read'
    mail.until = undefined
  }
  return moved.map((mail) => mail.key)
}

export function expire(model: MailboxModel, agent: string) {
  const box = boxOf(model, agent).filter(isOpen)
  const released = box.filter((mail) => mail.until !== undefined && mail.until <= model.now)
  for (const mail of released) {
    mail.state = 'queued'
    mail.until = undefined
  }
  const dues = box.flatMap((mail) => (mail.until === undefined ? [] : [mail.until]))
  return {
    released: released.map((mail) => mail.key),
    nextDue: dues.length === 0 ? undefined : Math.min(...dues),
  }
}
