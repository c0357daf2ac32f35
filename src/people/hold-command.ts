import { ORCHESTRATOR, type Principal } from '../base/agent.ts'
import { AppError } from '../base/errors.ts'
import { formatId } from '../base/ids.ts'
import type { HandlerContext } from '../commands/context.ts'
import { behalf } from '../commands/identity.ts'
import { pairOf } from '../messages/conversations.ts'
import { park } from '../messages/store/parked.ts'
import type { Command, CommandDefinition } from '../protocol/command.ts'
import type { Receipt } from '../protocol/receipt.ts'
import type { Approval, Decision } from '../rules/rule.ts'
import { setTimer } from '../store/timer-rows.ts'
import { taskOfRequest } from '../tasks/audit-data.ts'
import { ownTask } from '../tasks/references.ts'
import { hashOf } from './request-view.ts'
import { type HumanRequestRow, insertHumanRequest, type NewHumanRequest } from './store/human-requests.ts'

/** An approval nobody gives is not executed and expires (C8, C9). */
const APPROVAL_MS = 72 * 3600_000

export type HeldReceipt = Extract<Receipt, { status: 'held' }>

/** Who said the held command, so that it is later carried out in that speaker's name. */
export interface HeldBy {
  speaker: string
  principal: Principal
  /** The person who spoke, for an agent or themselves. */
  person?: string
  onBehalf: boolean
  /** The conversation that an approval lets go on. */
  pair?: string
  /** The speaker's task when it was said, null for none: by the time of the verdict it may have others. */
  saidIn?: string | null
}

/** A rule says ask: the command waits, unchanged, for a person's verdict. */
export async function hold(
  context: HandlerContext,
  definition: CommandDefinition,
  command: Command,
  decision: Decision,
): Promise<HeldReceipt> {
  const wanted = describe(definition, command, context.parts.redact)
  const id = await openRequest(context, command, {
    kind: 'approval',
    purpose: 'command',
    question: `May ${context.speaker.name} ${wanted}?`,
    reason: decision.reason,
    wanted,
    approval: decision.approval,
  })
  return { status: 'held', request_id: id, reason: `a person was asked: ${decision.reason}` }
}

/** The loop breaker: the conversation rests, and the message or delegation that tripped it waits for a person. */
export async function askToGoOn(
  context: HandlerContext,
  command: Command,
  to: string,
  reason: string,
): Promise<HeldReceipt> {
  const { tx, speaker } = context
  const pair = pairOf(speaker.name, to)
  const id = await openRequest(
    context,
    command,
    {
      kind: 'escalation',
      purpose: 'go_on',
      question: `${speaker.name} and ${to} may be going in circles. Let them go on?`,
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
    text: `${speaker.name} and ${to} are parked: ${reason}`,
    data: { pair: pair.split(' '), request_id: id },
  })
  return {
    status: 'held',
    request_id: id,
    reason: `the conversation is parked, a person was asked: ${reason}`,
  }
}

export function parkedReason(from: string, to: string, request: number): string {
  return `the conversation between ${from} and ${to} is parked until a person decides on ${formatId('req', request)}`
}

type Asked = Pick<NewHumanRequest, 'kind' | 'purpose' | 'question' | 'reason'> & {
  /** What is held: the asker's task waits for the verdict on it. */
  wanted?: string
  approval?: Approval | undefined
}

/** Whose request it is, as the column `context` keeps it. */
export function heldBy({ context }: Pick<HumanRequestRow, 'context'>): HeldBy {
  return JSON.parse(context) as HeldBy
}

async function openRequest(
  context: HandlerContext,
  command: Command,
  { wanted, approval, ...asked }: Asked,
  pair?: string,
): Promise<string> {
  const { tx, speaker, parts } = context
  const action = JSON.stringify(command)
  const saidIn = await taskSaidIn(context)
  const held: HeldBy = {
    speaker: speaker.name,
    principal: speaker.principal,
    onBehalf: speaker.onBehalf,
    ...(speaker.person === undefined ? {} : { person: speaker.person }),
    ...(pair === undefined ? {} : { pair }),
    saidIn,
  }
  const expiresAt = tx.now + APPROVAL_MS
  const bound = { asker: speaker.name, context: JSON.stringify(held), action }
  const key = await insertHumanRequest(tx, {
    ...asked,
    ...bound,
    action_hash: hashOf(bound),
    expires_at: expiresAt,
    approvers: approval?.approvers === undefined ? null : JSON.stringify(approval.approvers),
    quorum: approval?.quorum ?? 1,
  })
  const id = formatId('req', key)
  await setTimer(tx, 'expire_request', id, expiresAt)
  if (wanted !== undefined && saidIn !== null) {
    await parts.tasks.approvalAsked(tx, saidIn, { by: speaker.name, question: id, text: wanted })
  }
  const about = await taskOfRequest(tx, { id, asker: speaker.name, context: bound.context })
  tx.audit({
    type: 'human.asked',
    class: 'internal',
    actor: speaker.name,
    text: `${id}: ${asked.question} (${asked.reason})`,
    data: {
      request_id: id,
      kind: asked.kind,
      command: command.type,
      action_hash: hashOf(bound),
      ...(approval === undefined ? {} : approval),
      ...about,
      ...behalf(speaker),
    },
  })
  tx.afterCommit(() => parts.timers.setFor(expiresAt))
  return id
}

/** As a command that names no task is understood at this moment. */
async function taskSaidIn(context: HandlerContext): Promise<string | null> {
  const task = await ownTask(context, undefined)
  return task === undefined || task instanceof AppError ? null : task.id
}

/** What the command does, in words for people. */
export function describe(
  definition: CommandDefinition,
  command: Command,
  redact: (text: string) => string,
): string {
  const { to, title, content, action, target } = command.fields as Record<string, string | undefined>
  if (definition.type === 'send_message') {
    return `send ${to} the message "${redact((title ?? content ?? '').slice(0, 8192)).slice(0, 80)}"`
  }
  if (definition.type === 'request_action') return `${action} ${target}`
  return definition.summary.charAt(0).toLowerCase() + definition.summary.slice(1)
}
