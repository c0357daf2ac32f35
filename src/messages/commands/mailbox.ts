import { AppError } from '../../base/errors.ts'
import { parseId } from '../../base/ids.ts'
import type { HandlersOf } from '../../commands/commands.ts'
import type { HaltState } from '../../commands/halt-state.ts'
import { decideSubject, subjectAllowed } from '../../commands/identity.ts'
import type { Reader } from '../../store/store.ts'
import { countQueued } from '../deliveries.ts'
import type { Mailboxes } from '../mailboxes.ts'
import { type Mail, type MailboxFilter, readMailbox, wireMail, withinBytes } from '../messages.ts'

const MANY = 1000

function announced(waiting: number): string {
  if (waiting === 0) return 'No new messages'
  return waiting === 1 ? '1 new message follows' : `${waiting} new messages follow`
}

function summary(count: number, remaining: number): string {
  if (count === 0) return 'No new messages'
  const more = remaining === 0 ? '' : `; ${remaining} more wait, check again`
  return `${count === 1 ? '1 new message' : `${count} new messages`}${more}`
}

/** One page is enough for a look; `after`, and the HTTP route, go further. */
const PAGE = { messages: 1000, readAtOnce: 100 }

/** Reads as many as fit into an answer, a few at a time because each may be large. */
async function readPage(reader: Reader, agent: string, filter: MailboxFilter, after: number | undefined) {
  const messages: Mail[] = []
  while (messages.length < PAGE.messages) {
    const last = messages.at(-1)
    const from = last === undefined ? after : parseId('msg', last.id)
    const read = await readMailbox(reader, agent, filter, {
      limit: PAGE.readAtOnce,
      ...(from === undefined ? {} : { after: from }),
    })
    messages.push(...read)
    const fitting = withinBytes(messages)
    if (fitting.length < messages.length) return { messages: fitting, isWhole: false }
    if (read.length < PAGE.readAtOnce) return { messages, isWhole: true }
  }
  return { messages, isWhole: false }
}

export interface MailboxHandlersOptions {
  mailboxes: Pick<Mailboxes, 'handOut' | 'acknowledge'>
  haltState: Pick<HaltState, 'refusal'>
}

export function mailboxHandlers({
  mailboxes,
  haltState,
}: MailboxHandlersOptions): HandlersOf<'mailbox_check' | 'query_mailbox' | 'acknowledge'> {
  return {
    mailbox_check: {
      isEachTime: true,
      decide: decideSubject,
      async handle(context, fields, definition) {
        const { tx, speaker } = context
        const agent = subjectAllowed(context, fields, definition)
        // The door refuses an agent; the operator must not take the halt for an empty mailbox.
        const halted = haltState.refusal(tx)
        if (halted !== undefined) return halted
        // An agent in a session gets its mail as messages of its next turn, followed by their ids.
        if (context.channel === 'text' && agent === speaker.name) {
          const waiting = await countQueued(tx, agent, MANY)
          return { status: 'ok', result: announced(waiting), details: { waiting } }
        }
        const { messages, remaining } = await mailboxes.handOut(
          tx,
          agent,
          `handed out to ${speaker.name}'s mailbox_check`,
        )
        return {
          status: 'ok',
          result: summary(messages.length, remaining),
          details: { messages: messages.map(wireMail), remaining },
        }
      },
    },

    query_mailbox: {
      looksOnly: true,
      decide: decideSubject,
      async handle(context, fields, definition) {
        const { tx } = context
        const agent = subjectAllowed(context, fields, definition)
        const after = fields.after === undefined ? undefined : parseId('msg', fields.after)
        const { messages, isWhole } = await readPage(tx, agent, fields.filter, after)
        const more = isWhole ? {} : { next: `after="${messages.at(-1)!.id}"` }
        return {
          status: 'ok',
          result: `${messages.length} ${fields.filter === 'all' ? 'in all' : fields.filter}`,
          details: { agent, filter: fields.filter, messages: messages.map(wireMail), ...more },
        }
      },
    },

    acknowledge: {
      // An agent must be able to confirm many messages, or they come again for ever.
      free: true,
      whileHalted: true,
      decide: decideSubject,
      async handle(context, fields, definition) {
        const { tx, speaker } = context
        const agent = subjectAllowed(context, fields, definition)
        const { acknowledged, already_read, unknown } = await mailboxes.acknowledge(
          tx,
          agent,
          fields.ids,
          `acknowledged by ${speaker.name}`,
        )
        if (unknown.length === fields.ids.length) {
          const noId = unknown.every((id) => parseId('msg', id) === undefined)
          const named = unknown.join(', ').slice(0, 200)
          return new AppError(
            noId ? 'INVALID_COMMAND' : 'NOT_FOUND',
            noId ? `Not message ids: ${named}` : `No messages to ${agent}: ${named}`,
            { hint: 'A message id looks like msg_12; query_mailbox with filter all lists them.' },
          )
        }
        return {
          status: 'ok',
          result: `${acknowledged.length} acknowledged`,
          details: { acknowledged, already_read, unknown },
        }
      },
    },
  }
}
