import { hash } from 'node:crypto'
import { ORCHESTRATOR } from '../../base/agent.ts'
import { AppError } from '../../base/errors.ts'
import { formatId } from '../../base/ids.ts'
import type { Handle } from '../../commands/commands.ts'
import { findTask } from '../../tasks/tasks.ts'
import { findWork, latestWorkAbout } from '../store/work.ts'
import type { CocViolationFlag, HitlApprovalRequest, TeamMessage } from '../wire/codec.ts'
import { readReport } from '../wire/report.ts'
import type { createAgentHealth } from './agent-health.ts'
import { reportContextOf } from './delegate-work.ts'
import { storeFlags } from './filter-reports.ts'
import type { Proposals } from './handle-proposals.ts'
import type { GithubParts } from './parts.ts'

export interface MemberMessageOptions {
  parts: GithubParts
  handle: Handle
  proposals: Proposals
  health: Pick<ReturnType<typeof createAgentHealth>, 'reported'>
  /** A flag for moderators was stored. */
  flagged(): void
  /** A proposal was stored. */
  proposed(): void
}

export interface MessageReceipt {
  status: 'accepted' | 'known'
  message_id: string
}

/** Handles each message of the protocol that a member sends (S3.8–S3.16). */
export function createMessageHandler({
  parts,
  handle,
  proposals,
  health,
  flagged,
  proposed,
}: MemberMessageOptions) {
  const { store, clock, redact } = parts

  /** Validates the report first, so that the member gets its mistakes as the answer. */
  async function complete(
    agent: string,
    delegation: string,
    id: string,
    text: string,
  ): Promise<MessageReceipt['status']> {
    const work = await findWork(store, delegation)
    if (work === undefined || work.agent !== agent)
      throw violation(`in_reply_to: ${delegation.slice(0, 80)} is not one of your delegations`)
    const task = work.task === null ? undefined : await findTask(store, formatId('task', work.task))
    if (work.state !== 'delegated' || task === undefined) return 'known'
    const read = readReport(text, reportContextOf(work, task))
    if (!read.ok) throw violation(read.error)
    const receipt = await handle(
      { kind: 'agent', agent },
      { type: 'report', fields: { in_response_to: task.id, status: 'completed', result: text } },
      { idempotencyKey: `team/${id}`.slice(0, 200) },
    )
    if (receipt.status === 'error') throw new AppError(receipt.code, receipt.message)
    return 'accepted'
  }

  async function workFor(agent: string, delegation: string | undefined, number: number | undefined) {
    const named = delegation === undefined ? undefined : await findWork(store, delegation)
    if (named !== undefined) return named.agent === agent ? named : undefined
    return await latestWorkAbout(store, agent, number)
  }

  async function flag(agent: string, message: CocViolationFlag, text: string): Promise<void> {
    const work = await workFor(agent, message.inReplyTo, undefined)
    const task = work?.task ? await findTask(store, formatId('task', work.task)) : undefined
    await store.write(async (tx) => {
      await storeFlags(tx, redact, {
        context: {
          delegation: `${work?.id ?? agent}/${hash('sha256', message.id).slice(0, 16)}`,
          task: task?.id ?? 'task_0',
          agent,
          role: work?.role ?? message.from,
          at: message.at,
          ...(work?.number ? { number: work.number } : {}),
        },
        repository: work?.repository ?? '',
        flags: [JSON.parse(text) as Record<string, unknown>],
      })
    })
    flagged()
  }

  async function ask(agent: string, message: HitlApprovalRequest, text: string): Promise<void> {
    const { issueNumber, prNumber } = message.proposedAction
    const work = await workFor(agent, message.inReplyTo, issueNumber ?? prNumber)
    if (work === undefined) throw violation('in_reply_to: you have no task that this is about')
    const completion = {
      ...EMPTY_COMPLETION,
      message_id: `${message.id}-completion`,
      timestamp: message.at,
      from_agent: message.from,
      in_reply_to: work.id,
    }
    const context = reportContextOf(work, { id: formatId('task', work.task ?? 0), createdAt: clock.now() })
    const request = { ...(JSON.parse(text) as object), in_reply_to: work.id }
    const read = readReport(JSON.stringify([request, completion]), context)
    if (!read.ok) throw violation(read.error)
    const [refused] = read.value.refused
    if (refused !== undefined) throw violation(`${refused.type}: ${refused.why}`)
    const { rationale } = message
    await store.write(async (tx) => {
      for (const proposal of read.value.byApproval)
        await proposals.propose(tx, { work, proposal, rationale, requiresHitl: true, wantsReview: false })
    })
    proposed()
  }

  return async (agent: string, message: TeamMessage, text: string): Promise<MessageReceipt> => {
    const receipt: MessageReceipt = { status: 'accepted', message_id: message.id }
    switch (message.type) {
      case 'task_delegation':
        throw new AppError(
          'FORBIDDEN',
          'Only the orchestrator delegates tasks to agents of the GitHub team (S3.1)',
        )
      case 'agent_health_check':
        health.reported(agent, message)
        return receipt
      case 'task_completion':
        return { ...receipt, status: await complete(agent, message.inReplyTo, message.id, text) }
      case 'coc_violation_flag':
        await flag(agent, message, text)
        return receipt
      case 'hitl_approval_request':
        await ask(agent, message, text)
        return receipt
    }
  }
}

/** The report parser expects a completion; an approval request comes without one. */
const EMPTY_COMPLETION = {
  message_type: 'task_completion',
  to_agent: ORCHESTRATOR,
  status: 'success',
  confidence_score: 1,
  actions_taken: [],
  rationale: '',
}

const VIOLATION = 'Protocol violation'
/** Notify people after this many violations of one agent within the time. */
const MAX_VIOLATIONS = 3
const VIOLATION_WINDOW_MS = 3600_000

export function violation(problem: string): AppError {
  return new AppError('INVALID_COMMAND', `${VIOLATION}: ${problem}`, {
    hint: 'docs/github.md describes the messages.',
  })
}

export function isViolation(error: unknown): error is AppError {
  return error instanceof AppError && error.message.startsWith(VIOLATION)
}

/** Records each violation of the protocol and notifies people of repeated ones (S3.25), except about conduct (S3.15). */
export function createViolationLog({ store, clock, redact, team, people }: GithubParts) {
  const times = new Map<string, number[]>()

  return async (agent: string, { message }: AppError, mayBeFlag: boolean): Promise<void> => {
    if (team().isConfidential(agent) || mayBeFlag) return
    const now = clock.now()
    const recent = [...(times.get(agent) ?? []), now].filter((at) => now - at < VIOLATION_WINDOW_MS)
    // After a notice the count starts again.
    times.set(agent, recent.length === MAX_VIOLATIONS ? [] : recent)
    await store.write(async (tx) => {
      tx.audit({
        type: 'github.violation',
        class: 'internal',
        actor: agent,
        text: redact(`${agent}: ${message}`.slice(0, 500)),
      })
      if (recent.length !== MAX_VIOLATIONS) return
      const question = `${agent} keeps violating the protocol of the GitHub team`
      const why = `${recent.length} invalid messages within an hour. The last: ${message}`
      await people.notify(tx, { agent, question, reason: redact(why.slice(0, 2000)) })
    })
  }
}
