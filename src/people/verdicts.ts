import type { Clock } from '../base/clock.ts'
import { AppError } from '../base/errors.ts'
import { redactedExcerpt } from '../base/excerpt.ts'
import { formatId, parseId } from '../base/ids.ts'
import type { Person } from '../base/person.ts'
import { failure, type Result } from '../base/result.ts'
import type { Handlers } from '../commands/commands.ts'
import type { HaltState } from '../commands/halt-state.ts'
import { signedBy } from '../commands/identity.ts'
import type { Team } from '../commands/team.ts'
import type { Receipt } from '../protocol/receipt.ts'
import type { Registry } from '../protocol/registry.ts'
import type { Store, Tx } from '../store/store.ts'
import { clearTimer, type Timers } from '../store/timers.ts'
import { type AnswerCheck, readAnswer } from './answers.ts'
import { changeAction, changesText, createRelease, giveApproval, heldCommand } from './approvals.ts'
import { expireRequests, expiryProblem } from './expiry.ts'
import type { HeldInTasks } from './hold-command.ts'
import type { HumanDecision } from './human-request.ts'
import { createNotifyAsker, type NotifyAskerOptions } from './notify-asker.ts'
import {
  type Decided,
  decideHumanRequest,
  findHumanRequest,
  type HumanRequestRow,
  type HumanVerdict,
  lockHumanRequest,
} from './people.ts'
import type { PermissionDialogs } from './permission-dialogs.ts'
import { viewRequests } from './request-view.ts'
import { problemWithVerdict } from './verdict-rules.ts'

type ClosingState = 'approved' | 'modified' | 'rejected' | 'answered'

/** The room that asked; it continues after the verdict. */
export interface RequestOwner {
  /** Data that makes an audit entry show up with the task or run. */
  about(tx: Tx, row: HumanRequestRow): Promise<Readonly<Record<string, unknown>>>
  /** Continues after the verdict, and returns a sentence about what happens next. */
  decided(
    tx: Tx,
    row: HumanRequestRow,
    verdict: { decision: 'approve' | 'reject' | 'answer'; comment: string | null; by: string },
  ): Promise<string> | string
  /** Called when the request expires. Without it, the request has no timer. */
  expired?(tx: Tx, row: HumanRequestRow): Promise<void>
}

interface VerdictsOptions {
  store: Store
  timers: Timers
  clock: Clock
  registry: Registry
  handlers: Handlers
  haltState: Pick<HaltState, 'halted' | 'noApproval'>
  permissions: Pick<PermissionDialogs, 'checkOpen' | 'decided'>
  tasks: HeldInTasks
  /** Owners of requests by their purpose: `task`, `run`. */
  owners: Readonly<Record<string, RequestOwner>>
  checkAnswer: AnswerCheck
  post: NotifyAskerOptions['post']
  onContinued(pair: string): void
  redact(text: string): string
  team(): Team
}

/** Executes or rejects a held command, once, and notifies the asker either way (C9). */
export function createVerdicts(options: VerdictsOptions) {
  const { store, clock, haltState, permissions, owners, redact, team } = options
  const about: NotifyAskerOptions['about'] = (tx, row) =>
    owners[row.purpose]?.about(tx, row) ?? options.tasks.about(tx, { ...row, id: formatId('req', row.id) })
  const asker = createNotifyAsker({ team, post: options.post, tasks: options.tasks, about })
  const release = createRelease(options)
  const decidedListeners: ((request: string) => void)[] = []
  const notifyDecided = (request: string) => {
    for (const listener of decidedListeners) listener(request)
  }

  /** Returns a model's objection to an answer. Runs before the transaction, which must not wait for a model. */
  async function checkAnswer(
    person: Person,
    id: string,
    verdict: HumanVerdict,
  ): Promise<AppError | undefined> {
    if (verdict.decision !== 'answer' || verdict.insist === true) return undefined
    const row = await findHumanRequest(store, parseId('req', id) ?? 0)
    if (row?.kind !== 'input') return undefined
    // If the verdict is invalid anyway, the transaction reports why.
    if (problemWith(row, person, verdict, clock.now()) !== undefined) return undefined
    return await options.checkAnswer(row, verdict.comment ?? '', person.name)
  }

  function problemWith(
    row: HumanRequestRow,
    person: Person,
    verdict: HumanVerdict,
    now: number,
  ): AppError | undefined {
    const problem = problemWithVerdict(team(), row, person, verdict)
    // A halt stops the time of requests.
    return problem ?? (haltState.halted() === undefined ? expiryProblem(row, now) : undefined)
  }

  const decide: DecideRequest = async (unsigned, person, id, verdict) => {
    const row = await lockHumanRequest(unsigned, parseId('req', id) ?? 0)
    if (row === undefined) return failure(noRequest(id))
    const { decision } = verdict
    const isApproval = decision === 'approve' || decision === 'modify'
    const problem =
      problemWith(row, person, verdict, unsigned.now) ??
      (isApproval ? haltState.noApproval(unsigned) : undefined)
    if (problem !== undefined) return failure(problem)
    if (row.purpose === 'permission') permissions.checkOpen(row)
    const work: VerdictContext = { tx: signedBy(unsigned, person.name), unsigned, row, person, verdict }
    const receipt = await DECIDE[decision](work)
    const [request] = await viewRequests(unsigned, [(await findHumanRequest(unsigned, row.id))!], person)
    return { ok: true, value: { request: request!, receipt } }
  }

  const DECIDE: Record<HumanDecision, (work: VerdictContext) => Promise<Receipt | undefined>> = {
    answer,
    reject,
    approve,
    modify,
  }

  async function answer(work: VerdictContext): Promise<Receipt> {
    const { tx, row, verdict } = work
    const read = readAnswer(row, verdict.comment ?? '')
    if (!read.ok) throw read.error
    await close(work, 'answered', read.value.text)
    const continued = await continueOwner(work, read.value.text)
    if (continued !== undefined) return continued
    await asker.answered(tx, row, read.value.text)
    return { status: 'ok', result: `${row.asker} gets the answer` }
  }

  async function reject(work: VerdictContext): Promise<Receipt> {
    const { tx, row } = work
    const comment = commentOf(work)
    await close(work, 'rejected', comment)
    const continued = await continueOwner(work, comment)
    if (continued !== undefined) return continued
    await release.keepParked(tx, row)
    const reason = comment === null ? 'a person rejected it' : `a person rejected it: ${comment}`
    const receipt: Receipt = { status: 'blocked', reason }
    await notifyAsker(work, receipt, 'rejected')
    return receipt
  }

  /** Counts one approval; the last one needed executes the action. */
  async function approve(work: VerdictContext): Promise<Receipt | undefined> {
    const { tx, row, person } = work
    const comment = commentOf(work)
    if (row.action === null) {
      await close(work, 'approved', comment)
      return (await continueOwner(work, comment)) ?? { status: 'ok', result: 'noted' }
    }
    heldCommand(row)
    const given = await giveApproval(tx, team(), row, person, comment)
    if (given < row.quorum) {
      const id = formatId('req', row.id)
      tx.audit({
        ...(await entry(work, 'approval_given', comment)),
        text: `${id}: ${person.name} approves, ${given} of ${row.quorum}: ${row.question}${remark(comment)}`,
      })
      return undefined
    }
    const state = row.modified_by === null ? 'approved' : 'modified'
    await close(work, state, comment)
    const receipt = await release.perform(work.unsigned, row)
    await notifyAsker(work, receipt, state)
    return receipt
  }

  /** Changes the action, and counts as the first approval of the changed action. */
  async function modify(work: VerdictContext): Promise<Receipt | undefined> {
    const { tx, row, person, verdict } = work
    const context = release.contextOf(work.unsigned, row, false)
    const changed = await changeAction(context, options, row, person, verdict.fields ?? {})
    tx.audit({
      ...(await entry({ ...work, row: changed }, 'action_changed', commentOf(work))),
      text: redactedExcerpt(redact, `${formatId('req', row.id)}: ${changesText(changed)}`).trimEnd(),
    })
    return await approve({ ...work, row: changed })
  }

  async function close(work: VerdictContext, state: ClosingState, comment: string | null) {
    const { tx, row, person } = work
    await decideHumanRequest(tx, row.id, { state, by: person.name, comment })
    clearTimer(tx, 'expire_request', formatId('req', row.id))
    tx.afterCommit(() => notifyDecided(formatId('req', row.id)))
    tx.audit({
      ...(await entry(work, state, comment)),
      text: `${formatId('req', row.id)} ${state}: ${row.question}${remark(comment)}`,
    })
  }

  async function entry({ tx, row, person }: VerdictContext, what: string, comment: string | null) {
    return {
      type: `human.${what}`,
      class: 'internal' as const,
      actor: person.name,
      subject: row.asker,
      data: {
        request_id: formatId('req', row.id),
        kind: row.kind,
        ...(row.action_hash === null ? {} : { action_hash: row.action_hash }),
        ...(comment === null ? {} : { comment: redactedExcerpt(redact, comment) }),
        ...(await about(tx, row)),
      },
    }
  }

  /** Undefined if no room owns the request. */
  async function continueOwner(
    { tx, row, verdict, person }: VerdictContext,
    comment: string | null,
  ): Promise<Receipt | undefined> {
    const decision = verdict.decision as Exclude<HumanDecision, 'modify'>
    const owner = owners[row.purpose]
    if (owner === undefined) return undefined
    return { status: 'ok', result: await owner.decided(tx, row, { decision, comment, by: person.name }) }
  }

  async function notifyAsker(
    work: VerdictContext,
    receipt: Receipt,
    state: 'approved' | 'modified' | 'rejected',
  ) {
    const { tx, row, person } = work
    const comment = commentOf(work)
    if (row.purpose === 'permission') {
      const allow = state !== 'rejected'
      tx.afterCommit(() => permissions.decided(row.id, { allow, ...(comment === null ? {} : { comment }) }))
    } else await asker.decided(tx, row, { state, receipt, comment, by: person.name })
  }

  expireRequests({
    ...{ timers: options.timers, owners, about, asker, permissions, notifyDecided },
    keepParked: release.keepParked,
  })
  options.timers.on('unpark', release.continueConversation)

  return {
    decide,
    checkAnswer,
    /** Calls the listener after the commit in which a request was decided or expired; `req_7`. */
    onDecided: (listener: (request: string) => void) => void decidedListeners.push(listener),
  }
}

export type Verdicts = ReturnType<typeof createVerdicts>

/** Decides in the caller's transaction, which must not carry the person's name. Returns an error for an invalid verdict. */
export type DecideRequest = (
  tx: Tx,
  person: Person,
  request: string,
  verdict: HumanVerdict,
) => Promise<Result<Decided>>

interface VerdictContext {
  /** Records the person's name in audit entries of the operator. */
  tx: Tx
  unsigned: Tx
  row: HumanRequestRow
  person: Person
  verdict: HumanVerdict
}

function noRequest(id: string): AppError {
  return new AppError('NOT_FOUND', `There is no request ${id.slice(0, 100)}`, {
    hint: '`orc inbox` lists the open ones.',
  })
}

function commentOf({ verdict }: VerdictContext): string | null {
  return verdict.comment?.trim() || null
}

function remark(comment: string | null): string {
  return comment === null ? '' : ` (${comment})`
}
