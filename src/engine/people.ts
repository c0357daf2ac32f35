import { hash } from 'node:crypto'
import { ORCHESTRATOR, type Principal } from '../model/agent.ts'
import { type Command, type CommandDefinition, type FieldsOf, sendMessage } from '../model/command.ts'
import type { HumanRequest } from '../model/human-request.ts'
import { formatId } from '../model/identifier.ts'
import type { Receipt } from '../model/receipt.ts'
import type { Decision } from '../model/rule.ts'
import { type HumanRequestRow, insertHumanRequest, type NewHumanRequest } from '../store/human-requests.ts'
import { park } from '../store/parked.ts'
import { setTimer } from '../store/timers.ts'
import type { HandlerContext } from './context.ts'
import { pairOf } from './conversations.ts'
import { behalf } from './identity.ts'

/** An approval nobody gives is not executed and expires (C8, C9). */
const APPROVAL_MS = 72 * 3600_000

export type HeldReceipt = Extract<Receipt, { status: 'held' }>

/** Who said the held command, so that it is later carried out in that speaker's name. */
export interface HeldBy {
  speaker: string
  principal: Principal
  onBehalf: boolean
  /** The conversation that an approval lets go on. */
  pair?: string
}

/** A rule says ask: the command waits, unchanged, for a person's verdict. */
export async function hold(
  context: HandlerContext,
  definition: CommandDefinition,
  command: Command,
  decision: Decision,
): Promise<HeldReceipt> {
  const id = await openRequest(context, command, {
    kind: 'approval',
    purpose: 'command',
    question: `May ${context.speaker.name} ${describe(definition, command, context.parts.redact)}?`,
    reason: decision.reason,
  })
  const { tasks } = context.parts
  await tasks.approvalAsked(
    context.tx,
    context.speaker.name,
    id,
    describe(definition, command, context.parts.redact),
  )
  return { status: 'held', request_id: id, reason: `a person was asked: ${decision.reason}` }
}

/** The loop breaker: the conversation rests, and the message that tripped it waits for a person. */
export async function askToGoOn(
  context: HandlerContext,
  fields: FieldsOf<'send_message'>,
  reason: string,
): Promise<HeldReceipt> {
  const { tx, speaker } = context
  const pair = pairOf(speaker.name, fields.to)
  const id = await openRequest(
    context,
    { type: sendMessage.type, fields },
    {
      kind: 'escalation',
      purpose: 'go_on',
      question: `${speaker.name} and ${fields.to} may be going in circles. Let them go on?`,
      reason,
    },
    pair,
  )
  const key = Number(id.slice('req_'.length))
  await park(tx, pair, key)
  tx.audit({
    type: 'conversation.parked',
    class: 'internal',
    actor: ORCHESTRATOR,
    subject: speaker.name,
    text: `${speaker.name} and ${fields.to} are parked: ${reason}`,
    data: { pair: pair.split(' '), request_id: id },
  })
  return {
    status: 'held',
    request_id: id,
    reason: `the conversation is parked, a person was asked: ${reason}`,
  }
}

type Asked = Pick<NewHumanRequest, 'kind' | 'purpose' | 'question' | 'reason'>

async function openRequest(
  context: HandlerContext,
  command: Command,
  asked: Asked,
  pair?: string,
): Promise<string> {
  const { tx, speaker, parts } = context
  const action = JSON.stringify(command)
  const held: HeldBy = {
    speaker: speaker.name,
    principal: speaker.principal,
    onBehalf: speaker.onBehalf,
    ...(pair === undefined ? {} : { pair }),
  }
  const expiresAt = tx.now + APPROVAL_MS
  const key = await insertHumanRequest(tx, {
    ...asked,
    asker: speaker.name,
    action,
    action_hash: hash('sha256', action),
    context: JSON.stringify(held),
    expires_at: expiresAt,
  })
  const id = formatId('req', key)
  await setTimer(tx, 'expire_request', id, expiresAt)
  tx.audit({
    type: 'human.asked',
    class: 'internal',
    actor: speaker.name,
    text: `${id}: ${asked.question} (${asked.reason})`,
    data: { request_id: id, kind: asked.kind, command: command.type, ...behalf(speaker) },
  })
  tx.afterCommit(() => parts.timers.setFor(expiresAt))
  return id
}

function describe(definition: CommandDefinition, command: Command, redact: (text: string) => string): string {
  const { to, title, content, action, target } = command.fields as Record<string, string | undefined>
  if (definition.type === 'send_message') {
    return `send ${to} the message "${redact((title ?? content ?? '').slice(0, 8192)).slice(0, 80)}"`
  }
  if (definition.type === 'request_action') return `${action} ${target}`
  return definition.summary.charAt(0).toLowerCase() + definition.summary.slice(1)
}

/** The held command, if there is one and it is the one that was asked about. */
export function intactAction({ action, action_hash }: HumanRequestRow): Command | undefined {
  if (action === null || hash('sha256', action) !== action_hash) return undefined
  return JSON.parse(action) as Command
}

export function toHumanRequest(row: HumanRequestRow): HumanRequest {
  const request: HumanRequest = {
    id: formatId('req', row.id),
    kind: row.kind,
    state: row.state,
    asker: row.asker,
    question: row.question,
    reason: row.reason,
    createdAt: new Date(row.created_at).toISOString(),
    expiresAt: new Date(row.expires_at).toISOString(),
  }
  const action = intactAction(row)
  if (action !== undefined) request.action = { ...action, hash: row.action_hash! }
  if (row.decided_at !== null) request.decidedAt = new Date(row.decided_at).toISOString()
  if (row.decided_by !== null) request.decidedBy = row.decided_by
  if (row.comment !== null) request.comment = row.comment
  return request
}
