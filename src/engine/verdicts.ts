import { OPERATOR, ORCHESTRATOR, type Principal } from '../model/agent.ts'
import type { Command } from '../model/command.ts'
import { AppError } from '../model/errors.ts'
import type { HumanRequest } from '../model/human-request.ts'
import { formatId, parseId } from '../model/identifier.ts'
import type { Receipt } from '../model/receipt.ts'
import {
  decideHumanRequest,
  findHumanRequest,
  type HumanRequestRow,
  insertHumanRequest,
} from '../store/human-requests.ts'
import { unpark } from '../store/parked.ts'
import type { Tx } from '../store/store.ts'
import { clearTimer, setTimer } from '../store/timers.ts'
import { renderResponse } from '../wire/response.ts'
import type { HandlerContext, Switch } from './context.ts'
import { carryOut } from './handle.ts'
import type { Handlers } from './handler.ts'
import { type HeldBy, intactAction, toHumanRequest } from './people.ts'
import { post } from './post.ts'

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

/** A notice has no timer of its own; the date is for the reader. */
const NOTICE_MS = 365 * 24 * 3600_000

const STATE_OF = { approve: 'approved', reject: 'rejected', answer: 'answered' } as const

/** People's word on what was held: it is carried out or refused, once, and the asker is told either way (C9). */
export function createVerdicts(parts: Switch, handlers: Handlers) {
  async function decide(principal: Principal, id: string, verdict: Verdict): Promise<Decided> {
    if (principal.kind !== 'operator') {
      throw new AppError('FORBIDDEN', 'Only a person decides on requests to people', {
        hint: 'Go on with other work; the verdict comes as a message.',
      })
    }
    return await parts.store.write((tx) => decideIn(tx, id, verdict))
  }

  /** Why the verdict cannot be taken, for those who must not throw once something is written. */
  async function whyNot(tx: Tx, id: string, verdict: Verdict): Promise<AppError | undefined> {
    try {
      checkFits(await findRow(tx, id), verdict)
      return undefined
    } catch (error) {
      if (error instanceof AppError) return error
      throw error
    }
  }

  async function findRow(tx: Tx, id: string): Promise<HumanRequestRow> {
    const key = parseId('req', id)
    const row = key === undefined ? undefined : await findHumanRequest(tx, key)
    if (row !== undefined) return row
    throw new AppError('NOT_FOUND', `There is no request ${id.slice(0, 100)}`, {
      hint: '`orc inbox` lists the open ones.',
    })
  }

  async function decideIn(tx: Tx, id: string, verdict: Verdict): Promise<Decided> {
    const row = await findRow(tx, id)
    checkFits(row, verdict)
    if (row.purpose === 'permission') parts.permissions.mustWait(row)
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
    if (row.purpose === 'task') {
      const result = await parts.tasks.decided(tx, row, { decision: verdict.decision, comment })
      return {
        request: toHumanRequest((await findHumanRequest(tx, row.id))!),
        receipt: { status: 'ok', result },
      }
    }
    if (row.purpose === 'question') return await answered(tx, row, comment ?? '')
    const receipt = verdict.decision === 'approve' ? await approved(tx, row) : await refused(tx, row, comment)
    if (row.purpose === 'permission') {
      const allow = verdict.decision === 'approve'
      tx.afterCommit(() =>
        parts.permissions.decided(row.id, { allow, ...(comment === null ? {} : { comment }) }),
      )
    } else await tellAsker(tx, row, receipt, comment, STATE_OF[verdict.decision])
    const after = await findHumanRequest(tx, row.id)
    return { request: toHumanRequest(after!), receipt }
  }

  async function answered(tx: Tx, row: HumanRequestRow, answer: string): Promise<Decided> {
    const title = `${formatId('req', row.id)} answered`
    const content = `You asked: ${row.question}\nA person answers: ${answer}`
    await post(tx, parts.mailroom, { to: row.asker, title, content, priority: 'normal' })
    const after = await findHumanRequest(tx, row.id)
    return {
      request: toHumanRequest(after!),
      receipt: { status: 'ok', result: `${row.asker} is told` },
    }
  }

  async function approved(tx: Tx, row: HumanRequestRow): Promise<Receipt> {
    if (row.purpose === 'notice') return { status: 'ok', result: 'noted' }
    if (row.purpose === 'permission') return { status: 'ok', result: `${row.asker} may go on` }
    const command = heldCommand(row)
    const held = heldBy(row)
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
      once: (_, compute) => compute(),
    }
    return await carryOut(context, handler, definition, command)
  }

  async function refused(tx: Tx, row: HumanRequestRow, comment: string | null): Promise<Receipt> {
    await keepApart(tx, row)
    return {
      status: 'blocked',
      reason: comment === null ? 'a person said no' : `a person said no: ${comment}`,
    }
  }

  /** Nobody let them go on, so they stay parked for a while, and may then try again. */
  async function keepApart(tx: Tx, row: HumanRequestRow) {
    const { pair } = heldBy(row)
    if (pair === undefined) return
    const dueAt = tx.now + PARKED_AFTER_REJECTION_MS
    await setTimer(tx, 'unpark', pair, dueAt)
    tx.afterCommit(() => parts.timers.setFor(dueAt))
  }

  async function letGoOn(tx: Tx, pair: string) {
    await unpark(tx, pair)
    await clearTimer(tx, 'unpark', pair)
    tx.afterCommit(() => parts.conversations.forget(pair))
  }

  /** Every verdict wakes the asker, as a message that shows what became of its command. */
  async function tellAsker(
    tx: Tx,
    row: HumanRequestRow,
    receipt: Receipt,
    comment: string | null,
    state: string,
  ) {
    if (row.purpose === 'notice' || parts.team().resolve(row.asker) === undefined) return
    // Saying no, or letting it expire, needs no intact action.
    const type = intactAction(row)?.type ?? 'command'
    const id = formatId('req', row.id)
    const title = `${id} ${state}: ${type}`
    const remark = comment === null ? '' : `\nA person remarks: ${comment}\n`
    const content = `${row.question}\nVerdict: ${state}.${remark}\n${renderResponse(type, receipt)}`
    if (await parts.tasks.approvalDecided(tx, row, state, content)) return
    await post(tx, parts.mailroom, { to: row.asker, title, content, priority: 'high' })
  }

  /** What nobody decided on was not carried out, and stays in the inbox as something to know (C9). */
  async function escalate(tx: Tx, row: HumanRequestRow) {
    const key = await insertHumanRequest(tx, {
      kind: 'escalation',
      purpose: 'notice',
      asker: row.asker,
      question: `Nobody decided in time, so this was not done: ${row.question}`,
      reason: `${formatId('req', row.id)} expired`,
      action: null,
      action_hash: null,
      context: row.context,
      expires_at: tx.now + NOTICE_MS,
    })
    tx.audit({
      type: 'human.escalated',
      class: 'internal',
      actor: ORCHESTRATOR,
      subject: row.asker,
      text: `${formatId('req', key)}: ${formatId('req', row.id)} expired and was not carried out`,
      data: { request_id: formatId('req', key), expired: formatId('req', row.id) },
    })
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
    if (row.purpose === 'permission') {
      tx.afterCommit(() => parts.permissions.decided(row.id, undefined))
      return
    }
    if (row.purpose === 'task') {
      await parts.tasks.expired(tx, row)
      return
    }
    await keepApart(tx, row)
    await escalate(tx, row)
    await tellAsker(tx, row, { status: 'blocked', reason: 'no person decided in time' }, null, 'expired')
  })

  parts.timers.on('unpark', (tx, pair) => letGoOn(tx, pair))

  return { decide, decideIn, whyNot }
}

export type Verdicts = ReturnType<typeof createVerdicts>

/** The action is bound to its hash: what is carried out is what the person was shown. */
function heldCommand(row: HumanRequestRow): Command {
  const command = intactAction(row)
  if (command !== undefined) return command
  throw new AppError(
    'STORE_CORRUPT',
    `The action of ${formatId('req', row.id)} is not the one that was asked about`,
    {
      hint: 'It changed on disk and will not be carried out. Reject it, and run `orc doctor`.',
    },
  )
}

function heldBy(row: HumanRequestRow): HeldBy {
  return JSON.parse(row.context) as HeldBy
}

function checkFits(row: HumanRequestRow, verdict: Verdict) {
  if (row.state !== 'open') throw alreadyDecided(row)
  const wantsAnswer = row.kind === 'input'
  // What fits a task's request depends on what it asked.
  if (row.purpose === 'task' || wantsAnswer === (verdict.decision === 'answer')) {
    checkNotBlank(row, verdict)
    return
  }
  throw new AppError(
    'CONFLICT',
    wantsAnswer
      ? `${formatId('req', row.id)} is a question`
      : `${formatId('req', row.id)} wants a yes or a no`,
    { hint: wantsAnswer ? 'Use `orc answer ID TEXT`.' : 'Use `orc approve ID` or `orc reject ID`.' },
  )
}

/** S2.12: the question is repeated. */
function checkNotBlank({ question }: HumanRequestRow, { decision, comment = '' }: Verdict) {
  if (decision !== 'answer' || comment.trim() !== '') return
  throw new AppError('INVALID_COMMAND', `An answer cannot be blank. The question: ${question}`, {
    hint: 'Answer it in words.',
  })
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
