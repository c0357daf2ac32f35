import { EVERYONE, OPERATOR } from '../base/agent.ts'
import { AppError } from '../base/errors.ts'
import { redactedExcerpt } from '../base/excerpt.ts'
import { parseId } from '../base/ids.ts'
import { didYouMean } from '../base/suggestion.ts'
import { builtInEntries, type CommandEntry, type Handler, type HandlerContext } from '../commands/commands.ts'
import type { HaltState } from '../commands/halt-state.ts'
import { decideSubject, saidBy, subjectAllowed } from '../commands/identity.ts'
import type { RateLimits } from '../commands/rate-limits.ts'
import { type Holding, whyParked } from '../people/hold-command.ts'
import { type FieldsOf, sendMessage } from '../protocol/command.ts'
import type { Receipt, RecipientReceipt } from '../protocol/receipt.ts'
import { decideAction, decideSend, strictest } from '../rules/decide.ts'
import { nextHop } from '../rules/loop-breaker.ts'
import type { Decision } from '../rules/rule.ts'
import { type Reader, storable } from '../store/store.ts'
import type { Conversations } from './conversations.ts'
import { countQueued } from './delivery-states.ts'
import type { Mailboxes } from './mailboxes.ts'
import { type Mail, type MailboxFilter, readMailbox, wireMail, withinBytes } from './messages.ts'

type SendMessageFields = FieldsOf<'send_message'>

/** The result for one recipient. */
type Sent = RecipientReceipt | AppError

interface SendMessageOptions {
  mailboxes: Pick<Mailboxes, 'send'>
  conversations: Conversations
  rateLimits: Pick<RateLimits, 'takePair'>
  holding: Holding
  redact(text: string): string
}

function decide({ team, speaker }: HandlerContext, fields: SendMessageFields): Decision | AppError {
  const sized = checkSize(team.config.limits.messageBytes, fields)
  if (sized !== undefined) return sized
  if (fields.to === EVERYONE) return decideAction(team.rules, speaker.name, 'broadcast')
  const to = team.resolve(fields.to)
  if (to === undefined) return unknownRecipient(team.names, fields.to)
  const send = decideSend(team.rules, speaker.name, to)
  return fields.priority === 'urgent'
    ? strictest(send, decideAction(team.rules, speaker.name, 'urgent', to))
    : send
}

function sendMessageHandler(options: SendMessageOptions): Handler<SendMessageFields> {
  const { mailboxes, conversations, rateLimits, holding, redact } = options

  async function broadcast(context: HandlerContext, fields: SendMessageFields): Promise<Receipt | AppError> {
    const { team, speaker } = context
    const recipients: RecipientReceipt[] = []
    for (const to of team.names) {
      if (to === speaker.name) continue
      const copy = { ...fields, to }
      const decision = decide(context, copy)
      if (decision instanceof AppError) return decision
      if (decision.verdict === 'deny') {
        recipients.push({ to, status: 'blocked', reason: decision.reason })
      } else if (decision.verdict === 'ask' && !context.approved) {
        const held = await holding.hold(
          context,
          sendMessage,
          { type: 'send_message', fields: copy },
          decision,
        )
        recipients.push({ to, status: 'held', request_id: held.request_id, reason: held.reason })
      } else {
        const sent = await sendTo(context, copy, to)
        recipients.push(sent instanceof AppError ? { to, status: 'blocked', reason: sent.message } : sent)
      }
    }
    const first = recipients.find((recipient) => recipient.status === 'delivered')
    if (first === undefined) {
      const reasons = recipients.map(({ to, status, reason }) => `${to}: ${status}, ${reason}`)
      const held = recipients.find((recipient) => recipient.status === 'held')
      const reason = reasons.join('; ') || 'there are no other agents in the team'
      return held === undefined
        ? { status: 'blocked', reason }
        : { status: 'held', request_id: held.request_id!, reason }
    }
    return {
      status: 'delivered',
      message_id: first.message_id!,
      delivery: 'queued',
      to: EVERYONE,
      recipients,
    }
  }

  async function sendTo(context: HandlerContext, fields: SendMessageFields, to: string): Promise<Sent> {
    const { team, tx, speaker, approved } = context
    const fromAgent = speaker.name !== OPERATOR
    if (fromAgent && !approved) {
      const reason = await whyParked(tx, speaker.name, to)
      if (reason !== undefined) return { to, status: 'blocked', reason }
    }
    const wait =
      speaker.principal.kind === 'agent' && !approved
        ? context.once(`pair ${to}`, () => rateLimits.takePair(team, speaker.name, to, tx.now))
        : undefined
    if (wait !== undefined) return pairRateLimited(to, wait)

    // A message from a person starts a new conversation; so does one that a person allowed.
    const cause =
      fromAgent && !approved
        ? await conversations.causeOf(tx, speaker.name, fields.in_reply_to, tx.now)
        : undefined
    const hop = nextHop(cause)
    if (fromAgent && !approved) {
      const loop = context.once(`loop ${to}`, () =>
        conversations.observe(team, speaker.name, to, hop, tx.now),
      )
      if (loop !== undefined) {
        const held = await holding.askToContinue(
          context,
          { type: sendMessage.type, fields: { ...fields, to } },
          to,
          loop,
        )
        return { to, status: 'held', request_id: held.request_id, reason: held.reason }
      }
    }

    const content = storable(fields.content)
    const title = storable(fields.title ?? titleOf(content))
    const message = {
      from: speaker.name,
      to,
      title,
      content,
      priority: fields.priority,
      hop,
      correlation: cause?.correlation,
      inReplyTo: cause?.isNamed === true ? cause.key : undefined,
    }
    const id = await mailboxes.send(tx, message, {
      text: fields.title === undefined ? redactedExcerpt(redact, firstLine(content), 80) : title,
      data: { excerpt: redactedExcerpt(redact, content), ...saidBy(speaker) },
    })
    return { to, status: 'delivered', message_id: id }
  }

  return {
    decide,
    async handle(context, fields) {
      if (fields.to === EVERYONE) return broadcast(context, fields)
      const sent = await sendTo(context, fields, context.team.resolve(fields.to)!)
      return sent instanceof AppError ? sent : asReceipt(sent)
    },
  }
}

const MAX_TITLE_BYTES = 1000

function asReceipt(sent: RecipientReceipt): Receipt {
  if (sent.status === 'delivered') {
    return { status: 'delivered', message_id: sent.message_id!, delivery: 'queued', to: sent.to }
  }
  const reason = sent.reason ?? ''
  return sent.status === 'held'
    ? { status: 'held', request_id: sent.request_id!, reason }
    : { status: 'blocked', reason }
}

/** The first non-empty line of the content, cut to 80 characters (C13). */
export function titleOf(content: string): string {
  const line = firstLine(content)
  const characters = [...line]
  return characters.length <= 80 ? line : characters.slice(0, 80).join('')
}

function firstLine(content: string): string {
  return content.trimStart().split(/\r?\n/, 1)[0]!.trim()
}

function checkSize(limit: number, fields: SendMessageFields): AppError | undefined {
  const bytes = Buffer.byteLength(fields.content)
  if (bytes > limit) {
    return new AppError('TOO_LARGE', `The content is ${bytes} bytes; a message holds at most ${limit}`, {
      hint: 'Send it in parts, or put it into a file and send its path.',
    })
  }
  if (fields.title !== undefined && Buffer.byteLength(fields.title) > MAX_TITLE_BYTES) {
    return new AppError('TOO_LARGE', `The title is over ${MAX_TITLE_BYTES} bytes`, {
      hint: 'Keep the title to a line, and put the rest into the content.',
    })
  }
  return undefined
}

function unknownRecipient(names: readonly string[], to: string): AppError {
  return new AppError('UNKNOWN_RECIPIENT', `Unknown recipient: ${to.slice(0, 100)}`, {
    hint: `${didYouMean(to, names, '')} Valid agents: ${names.join(', ')}. Check the name and send again.`.trim(),
    data: { recipient: to.slice(0, 100) },
  })
}

function pairRateLimited(to: string, retryAfterMs: number): AppError {
  return new AppError(
    'RATE_LIMITED',
    `Too many messages to ${to}; try again in ${Math.ceil(retryAfterMs / 1000)} s`,
    {
      hint: 'Say more in one message instead of many. The limit is limits.pair_rate in orc.yaml.',
      data: { retryAfterMs },
    },
  )
}

const MANY = 1000

function announced(waiting: number): string {
  if (waiting === 0) return 'No new messages'
  return waiting === 1 ? '1 new message follows' : `${waiting} new messages follow`
}

function summary(count: number, remaining: number): string {
  if (count === 0) return 'No new messages'
  const more = remaining === 0 ? '' : `; ${remaining} more are waiting, check again`
  return `${count === 1 ? '1 new message' : `${count} new messages`}${more}`
}

/** Limits of one page. `after` reads the next one; the HTTP route has no limit. */
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

interface MessageCommandsOptions extends SendMessageOptions {
  mailboxes: Mailboxes
  haltState: Pick<HaltState, 'refusal'>
}

export function messageCommands(options: MessageCommandsOptions): CommandEntry[] {
  const { mailboxes, haltState } = options
  return builtInEntries({
    send_message: sendMessageHandler(options),

    mailbox_check: {
      isEachTime: true,
      decide: decideSubject,
      async handle(context, fields, definition) {
        const { tx, speaker } = context
        const agent = subjectAllowed(context, fields, definition)
        // The door refuses agents during a halt. The operator would otherwise see an empty mailbox.
        const halted = haltState.refusal(tx)
        if (halted !== undefined) return halted
        // An agent in a session gets its messages with its next turn, so the receipt only counts them.
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
      // Not rate-limited: messages that an agent cannot confirm are delivered again and again.
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
  })
}
