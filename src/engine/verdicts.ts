import { hash } from 'node:crypto'
import { OPERATOR, ORCHESTRATOR, type Principal } from '../model/agent.ts'
import type { Command } from '../model/command.ts'
import { AppError } from '../model/errors.ts'
import type { HumanRequest } from '../model/human-request.ts'
import { formatId, parseId } from '../model/identifier.ts'
import type { Receipt } from '../model/receipt.ts'
import { decideHumanRequest, findHumanRequest, type HumanRequestRow } from '../store/human-requests.ts'
import { insertMessage } from '../store/messages.ts'
import { unpark } from '../store/parked.ts'
import type { Tx } from '../store/store.ts'
import { clearTimer, setTimer } from '../store/timers.ts'
import { renderResponse } from '../wire/response.ts'
import type { HandlerContext, Switch } from './context.ts'
import { carryOut } from './handle.ts'
import type { Handlers } from './handler.ts'
import { type HeldBy, toHumanRequest } from './people.ts'

export interface Verdict {
  decision: 'approve' | 'reject' | 'answer'
  comment?: string
}

export interface Decided {
  request: HumanRequest
  /** What the held command came to, when it was carried out. */
  receipt?: Receipt
}

/** After a person said no, the two stay apart this long before they may try again. */
const PARKED_AFTER_REJECTION_MS = 3600_000

const STATE_OF = { approve: 'approved', reject: 'rejected', answer: 'answered' } as const

/** People's word on what was held: it is carried out or refused, once, and the asker is told either way (C9). */
export function createVerdicts(parts: Switch, handlers: Handlers) {
  async function decide(principal: Principal, id: string, verdict: Verdict): Promise<Decided> {
    if (principal.kind !== 'operator') {
      throw new AppError('FORBIDDEN', 'Only a person decides on requests to people', {
        hint: 'Use the operator token. An agent waits for the verdict; it comes as a message.',
      })
    }
    return await parts.store.write((tx) => decideIn(tx, id, verdict))
  }

  async function decideIn(tx: Tx, id: string, verdict: Verdict): Promise<Decided> {
    const key = parseId('req', id)
    const row = key === undefined ? undefined : await findHumanRequest(tx, key)
    if (row === undefined) {
      throw new AppError('NOT_FOUND', `There is no request ${id.slice(0, 100)}`, {
        hint: '`orc inbox` lists the open ones.',
      })
    }
    checkFits(row, verdict)
    const comment = verdict.comment?.trim() || null
    const closed = await decideHumanRequest(tx, row.id, {
      state: STATE_OF[verdict.decision],
      by: OPERATOR,
      comment,
    })
    if (!closed) throw alreadyDecided(row)
    await clearTimer(tx, 'expire_request', formatId('req', row.id))
    tx.audit({
      type: `human.${STATE_OF[verdict.decision]}`,
      class: 'internal',
      actor: OPERATOR,
      subject: row.asker,
      text: `${formatId('req', row.id)} ${STATE_OF[verdict.decision]}: ${row.question}${comment === null ? '' : ` (${comment})`}`,
      data: { request_id: formatId('req', row.id) },
    })
    const receipt = verdict.decision === 'approve' ? await approved(tx, row) : await refused(tx, row, comment)
    await tellAsker(tx, row, receipt, comment, STATE_OF[verdict.decision])
    const after = await findHumanRequest(tx, row.id)
    return { request: toHumanRequest(after!), receipt }
  }

  async function approved(tx: Tx, row: HumanRequestRow): Promise<Receipt> {
    const { command, held } = heldCommand(row)
    if (held.pair !== undefined) await letGoOn(tx, held.pair)
    const definition = parts.registry.find(command.type)
    const handler = handlers[command.type]
    if (definition === undefined || handler === undefined) {
      return { status: 'error', code: 'UNKNOWN_COMMAND', message: `Unknown command type: ${command.type}` }
    }
    const team = parts.team()
    const context: HandlerContext = {
      parts,
      team,
      tx,
      speaker: { name: held.speaker, principal: held.principal, onBehalf: held.onBehalf },
      approved: true,
    }
    return await carryOut(context, handler, definition, command)
  }

  async function refused(tx: Tx, row: HumanRequestRow, comment: string | null): Promise<Receipt> {
    const { held } = heldCommand(row)
    if (held.pair !== undefined) {
      const dueAt = tx.now + PARKED_AFTER_REJECTION_MS
      await setTimer(tx, 'unpark', held.pair, dueAt)
      tx.afterCommit(() => parts.timers.setFor(dueAt))
    }
    return {
      status: 'blocked',
      reason: comment === null ? 'a person said no' : `a person said no: ${comment}`,
    }
  }

  async function letGoOn(tx: Tx, pair: string) {
    await unpark(tx, pair)
    tx.afterCommit(() => parts.conversations.unparked(pair))
  }

  /** Every verdict wakes the asker, as a message that shows what became of its command. */
  async function tellAsker(
    tx: Tx,
    row: HumanRequestRow,
    receipt: Receipt,
    comment: string | null,
    state: string,
  ) {
    if (parts.team().resolve(row.asker) === undefined) return
    const { command } = heldCommand(row)
    const id = formatId('req', row.id)
    const title = `${id} ${state}: ${command.type}`
    const remark = comment === null ? '' : `\nA person remarks: ${comment}\n`
    const content = `${row.question}\nVerdict: ${state}.${remark}\n${renderResponse(command.type, receipt)}`
    const { key, digest } = await insertMessage(tx, {
      from: ORCHESTRATOR,
      to: row.asker,
      title,
      content,
      priority: 'high',
      hop: 0,
    })
    tx.audit({
      type: 'message.accepted',
      class: 'internal',
      actor: ORCHESTRATOR,
      subject: row.asker,
      text: title,
      data: { message_id: formatId('msg', key), priority: 'high', digest },
    })
    tx.afterCommit(() => parts.mailroom.announce(row.asker, 'high', ORCHESTRATOR))
  }

  parts.timers.on('expire_request', async (tx, id) => {
    const row = await findHumanRequest(tx, parseId('req', id) ?? 0)
    if (row === undefined) return
    const closed = await decideHumanRequest(tx, row.id, { state: 'expired', by: ORCHESTRATOR, comment: null })
    if (!closed) return
    tx.audit({
      type: 'human.expired',
      class: 'internal',
      actor: ORCHESTRATOR,
      subject: row.asker,
      text: `${id} expired without a verdict and was not carried out: ${row.question}`,
      data: { request_id: id },
    })
    await tellAsker(tx, row, { status: 'blocked', reason: 'no person decided in time' }, null, 'expired')
  })

  parts.timers.on('unpark', (tx, pair) => letGoOn(tx, pair))

  return { decide }
}

export type Verdicts = ReturnType<typeof createVerdicts>

/** The action is bound to its hash: what is carried out is what the person was shown. */
function heldCommand(row: HumanRequestRow): { command: Command; held: HeldBy } {
  if (row.action === null || hash('sha256', row.action) !== row.action_hash) {
    throw new AppError(
      'STORE_CORRUPT',
      `The action of ${formatId('req', row.id)} is not the one that was asked about`,
      {
        hint: 'It changed on disk and will not be carried out. Run `orc doctor`.',
      },
    )
  }
  return { command: JSON.parse(row.action) as Command, held: JSON.parse(row.context) as HeldBy }
}

function checkFits(row: HumanRequestRow, verdict: Verdict) {
  if (row.state !== 'open') throw alreadyDecided(row)
  const wantsAnswer = row.kind === 'input'
  if (wantsAnswer === (verdict.decision === 'answer')) return
  throw new AppError(
    'CONFLICT',
    wantsAnswer
      ? `${formatId('req', row.id)} is a question`
      : `${formatId('req', row.id)} wants a yes or a no`,
    { hint: wantsAnswer ? 'Use `orc answer ID TEXT`.' : 'Use `orc approve ID` or `orc reject ID`.' },
  )
}

function alreadyDecided(row: HumanRequestRow): AppError {
  return new AppError(
    'CONFLICT',
    `${formatId('req', row.id)} is ${row.state === 'open' ? 'decided' : row.state} already`,
    {
      hint: 'A verdict counts once. `orc inbox` lists what is still open.',
    },
  )
}
