import { OPERATOR } from '../../base/agent.ts'
import { AppError } from '../../base/errors.ts'
import { parseId } from '../../base/ids.ts'
import type { HandlerContext } from '../../commands/context.ts'
import type { Handler } from '../../commands/handler.ts'
import { subjectOf } from '../../commands/identity.ts'
import type { CommandDefinition, FieldsOf } from '../../protocol/command.ts'
import { decideAction } from '../../rules/decide.ts'
import type { Action, Decision } from '../../rules/rule.ts'
import type { Reader } from '../../store/store.ts'
import { countQueued } from '../store/deliveries.ts'
import { type Mail, type MailboxFilter, readMailbox } from '../store/messages.ts'
import { wireMail, withinBytes } from '../wire-mail.ts'

const OWN: Decision = { verdict: 'allow', rule: 'built-in: its own', reason: '' }

/** One's own is always allowed; another's needs the permission that the definition names (C14). */
export function decideSubject(
  { team, speaker }: HandlerContext,
  fields: Record<string, unknown>,
  definition: CommandDefinition,
): Decision | AppError {
  const subject = subjectOf(team, definition, speaker, fields)
  if (!subject.ok) return subject.error
  if (subject.value === speaker.name || speaker.name === OPERATOR) return OWN
  const permission = definition.subject!.permission as Action
  const decision = decideAction(team.rules, speaker.name, permission, subject.value)
  if (decision.verdict !== 'deny') return decision
  // C3: naming another without leave is an error and a matter of security, not of a rule between two agents.
  return new AppError('FORBIDDEN', `You are ${speaker.name}: ${decision.reason}`, {
    hint: `Leave "${definition.subject!.field}" out. For another agent it needs the permission ${permission}.`,
    data: { named: subject.value },
  })
}

/** After `decideSubject` said yes. */
export function subjectAllowed(
  { team, speaker }: HandlerContext,
  fields: Record<string, unknown>,
  definition: CommandDefinition,
): string {
  const subject = subjectOf(team, definition, speaker, fields)
  if (!subject.ok) throw subject.error
  return subject.value
}

export const mailboxCheckHandler: Handler<FieldsOf<'mailbox_check'>> = {
  isEachTime: true,
  decide: decideSubject,
  async handle(context, fields, definition) {
    const { parts, tx, speaker } = context
    const agent = subjectAllowed(context, fields, definition)
    // An agent's own is refused at the door; the operator's would look as if there were nothing.
    const halted = parts.haltState.refusal(tx)
    if (halted !== undefined) return halted
    // Said in the text of an agent that we run: its mail comes with the answer, as mail, by whose ids it is known.
    if (context.channel === 'text' && agent === speaker.name) {
      const waiting = await countQueued(tx, agent, MANY)
      return { status: 'ok', result: announced(waiting), details: { waiting } }
    }
    const { messages, remaining } = await parts.mailboxes.handOut(
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
}

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

/** A look without consequences, so that a page is enough; `after`, and the HTTP route, go further. */
const PAGE = { messages: 1000, readAtOnce: 100 }

/** As many as fit into an answer, read a few at a time: each may be large. */
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

export const queryMailboxHandler: Handler<FieldsOf<'query_mailbox'>> = {
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
}

export const acknowledgeHandler: Handler<FieldsOf<'acknowledge'>> = {
  // Whoever gets many messages must be able to confirm them, or they come again for ever.
  free: true,
  whileHalted: true,
  decide: decideSubject,
  async handle(context, fields, definition) {
    const { parts, tx, speaker } = context
    const agent = subjectAllowed(context, fields, definition)
    const { acknowledged, already_read, unknown } = await parts.mailboxes.acknowledge(
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
}
