import { ORCHESTRATOR, type Principal } from '../base/agent.ts'
import { redactedExcerpt } from '../base/excerpt.ts'
import { formatId } from '../base/ids.ts'
import type { HandlerContext } from '../commands/commands.ts'
import { saidBy } from '../commands/identity.ts'
import type { Command, CommandDefinition, FieldsOf } from '../protocol/command.ts'
import type { Receipt } from '../protocol/receipt.ts'
import { pairOf } from '../rules/loop-breaker.ts'
import type { Approval, Decision } from '../rules/rule.ts'
import type { Reader, Tx } from '../store/store.ts'
import type { Timers } from '../store/timers.ts'
import { APPROVAL_MS, askPeople, type HumanRequestRow, type PeopleRequest } from './people.ts'

type HeldReceipt = Extract<Receipt, { status: 'held' }>

/** The speaker of a held command, in whose name it is executed later. */
export interface HeldBy {
  speaker: string
  principal: Principal
  /** The person who sent the command, for an agent or for themselves. */
  person?: string
  onBehalf: boolean
  /** The parked conversation that an approval continues. */
  pair?: string
  /** The speaker's task at the time of the command, which may have changed by the time of the verdict; null: none. */
  saidIn?: string | null
}

/** Callbacks into tasks, for commands that their agents send. */
export interface HeldInTasks {
  /** The task that the speaker works on, or null. */
  taskOf(context: HandlerContext): Promise<string | null>
  /** The task waits for the verdict on the request. */
  onHeld(tx: Tx, task: string, held: { by: string; question: string; text: string }): Promise<void>
  /** The verdict for the task; false if no task waits for it. */
  onDecided(
    tx: Tx,
    row: HumanRequestRow,
    verdict: 'approved' | 'modified' | 'rejected' | 'expired',
    text: string,
  ): Promise<boolean>
  /** Data that makes an audit entry show up with the task's tree. */
  about(
    tx: Tx,
    request: { id: string; asker: string; context: string },
  ): Promise<Readonly<Record<string, unknown>>>
}

interface HoldingOptions {
  timers: Pick<Timers, 'setFor'>
  tasks: HeldInTasks
  redact(text: string): string
}

/** Commands that wait for a person. */
export interface Holding {
  /** Holds a command until a person decides on it, because a rule says so. */
  hold(
    context: HandlerContext,
    definition: CommandDefinition,
    command: Command,
    decision: Decision,
  ): Promise<HeldReceipt>
  /** Parks a conversation that the loop breaker stopped, and holds the message or delegation that triggered it. */
  askToContinue(context: HandlerContext, command: Command, to: string, reason: string): Promise<HeldReceipt>
}

type RequestToHold = Pick<PeopleRequest, 'kind' | 'purpose' | 'question' | 'reason'> & {
  /** The command as a phrase after "wants to". If set, the asker's task waits for the verdict. */
  wanted?: string
  approval?: Approval | undefined
}

export function createHolding({ timers, tasks, redact }: HoldingOptions): Holding {
  async function hold(
    context: HandlerContext,
    definition: CommandDefinition,
    command: Command,
    decision: Decision,
  ): Promise<HeldReceipt> {
    const wanted = describe(definition, command, redact)
    const id = await openRequest(context, command, {
      kind: 'approval',
      purpose: 'command',
      question: `${context.speaker.name} wants to ${wanted}`,
      reason: decision.reason,
      wanted,
      approval: decision.approval,
    })
    return { status: 'held', request_id: id, reason: `a person was asked: ${decision.reason}` }
  }

  async function askToContinue(
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
        question: `${speaker.name} and ${to} may be going in circles. Let them continue?`,
        reason,
      },
      pair,
    )
    const key = Number(id.slice('req_'.length))
    park(tx, pair, key)
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

  async function openRequest(
    context: HandlerContext,
    command: Command,
    { wanted, approval, ...asked }: RequestToHold,
    pair?: string,
  ): Promise<string> {
    const { tx, speaker } = context
    const saidIn = await tasks.taskOf(context)
    const heldBy: HeldBy = {
      speaker: speaker.name,
      principal: speaker.principal,
      onBehalf: speaker.onBehalf,
      ...(speaker.person === undefined ? {} : { person: speaker.person }),
      ...(pair === undefined ? {} : { pair }),
      saidIn,
    }
    const expiresAt = tx.now + APPROVAL_MS
    const held = JSON.stringify(heldBy)
    const { id } = await askPeople(tx, {
      ...{ ...asked, asker: speaker.name, action: command, approval, context: held, expiresAt, timers },
      text: `${asked.question} (${asked.reason})`,
      about: async (id) => ({
        ...(await tasks.about(tx, { id, asker: speaker.name, context: held })),
        ...saidBy(speaker),
      }),
    })
    if (wanted !== undefined && saidIn !== null) {
      await tasks.onHeld(tx, saidIn, { by: speaker.name, question: id, text: wanted })
    }
    return id
  }

  return { hold, askToContinue }
}

/** Reads the column `context` of a request that holds a command. */
export function heldBy({ context }: Pick<HumanRequestRow, 'context'>): HeldBy {
  return JSON.parse(context) as HeldBy
}

const VERBS: Record<FieldsOf<'request_action'>['action'], string> = {
  spawn_agent: 'start',
  terminate_agent: 'stop',
  reset_session: 'reset',
  pause_session: 'pause',
  resume_session: 'resume',
}

/** Describes the command as a phrase that follows "wants to". */
export function describe(
  definition: CommandDefinition,
  command: Command,
  redact: (text: string) => string,
): string {
  const { to, title, content, action, target } = command.fields as Record<string, string | undefined>
  if (definition.type === 'send_message') {
    return `send ${to} the message "${redactedExcerpt(redact, title ?? content ?? '', 80)}"`
  }
  if (definition.type === 'request_action') return `${VERBS[action as keyof typeof VERBS]} ${target}`
  return definition.summary.charAt(0).toLowerCase() + definition.summary.slice(1)
}

/** A conversation that the loop breaker stopped, by its pair of agents, and the request that asks a person about it. */
interface ParkedRow {
  pair: string
  request: number
}

/** Why these two agents may not write to each other now, or undefined if they may. */
export async function whyParked(reader: Reader, from: string, to: string): Promise<string | undefined> {
  const sql = 'SELECT pair, request FROM parked WHERE pair = ?'
  const row = await reader.get<ParkedRow>(sql, [pairOf(from, to)])
  if (row === undefined) return undefined
  return `the conversation between ${from} and ${to} is parked until a person decides on ${formatId('req', row.request)}`
}

function park(tx: Tx, pair: string, request: number): void {
  tx.run('INSERT INTO parked (pair, request, at) VALUES (?, ?, ?) ON CONFLICT (pair) DO NOTHING', [
    pair,
    request,
    tx.now,
  ])
}

export function unpark(tx: Tx, pair: string): void {
  tx.run('DELETE FROM parked WHERE pair = ?', [pair])
}
