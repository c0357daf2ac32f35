import type { Mail } from './store/messages.ts'

/** A message as agents and clients see it, with the field names of the seeds and ours (C10). */
export interface WireMail {
  id: string
  from: string
  to: string
  title: string
  content: string
  priority: string
  at: string
  delivery: string
  attempts: number
  correlation_id: string
  in_reply_to?: string
  task_id?: string
  kind?: string
}

export function wireMail(mail: Mail): WireMail {
  return {
    id: mail.id,
    from: mail.from,
    to: mail.to,
    title: mail.title,
    content: mail.content,
    priority: mail.priority,
    at: mail.at,
    delivery: mail.delivery,
    attempts: mail.attempts,
    correlation_id: mail.correlationId,
    ...(mail.inReplyTo === undefined ? {} : { in_reply_to: mail.inReplyTo }),
    ...(mail.task === undefined ? {} : { task_id: mail.task.id, kind: mail.task.kind }),
  }
}

/** Size limit of one answer: a model reads it, and it is sent in one piece. */
const ANSWER_BYTES = 4_000_000

/** The first messages that fit into an answer; at least one, however large. */
export function withinBytes(mails: readonly Mail[]): Mail[] {
  let bytes = 0
  const end = mails.findIndex((mail, index) => {
    bytes += Buffer.byteLength(mail.content)
    return index > 0 && bytes > ANSWER_BYTES
  })
  return end === -1 ? [...mails] : mails.slice(0, end)
}
