import { hash } from 'node:crypto'
import { AppError } from '../../base/errors.ts'
import { formatId } from '../../base/ids.ts'
import type { Handle } from '../../commands/commands.ts'
import type { Mailboxes } from '../../messages/mailboxes.ts'
import { findTask } from '../../tasks/tasks.ts'
import { readReport } from '../core/report.ts'
import { findWork, latestWorkAbout } from '../store/work.ts'
import type { CocViolationFlag, HitlApprovalRequest, TeamMessage } from '../wire/codec.ts'
import { askedOf } from './asked.ts'
import { storeFlags } from './filter-reports.ts'
import type { createHealth } from './health.ts'
import type { Proposals } from './proposals.ts'
import type { GithubParts } from './settings.ts'
import { violation } from './violations.ts'

export interface HearingOptions {
  parts: GithubParts & { readonly mailboxes: Mailboxes }
  handle: Handle
  proposals: Proposals
  health: Pick<ReturnType<typeof createHealth>, 'heard'>
  /** A flag for moderators was stored. */
  flagged(): void
  /** A proposal was stored. */
  proposed(): void
}

export interface Told {
  status: 'accepted' | 'known'
  message_id: string
}

/** What comes of each message of the protocol that a member says (S3.8–S3.16). */
export function createHearing({ parts, handle, proposals, health, flagged, proposed }: HearingOptions) {
  const { store, clock, redact } = parts

  /** A report of its task, checked before anything is done with it: what is wrong comes back as the answer. */
  async function complete(
    agent: string,
    delegation: string,
    id: string,
    text: string,
  ): Promise<Told['status']> {
    const work = await findWork(store, delegation)
    if (work === undefined || work.agent !== agent)
      throw violation(`in_reply_to: ${delegation.slice(0, 80)} is no delegation of yours`)
    const task = work.task === null ? undefined : await findTask(store, formatId('task', work.task))
    if (work.state !== 'delegated' || task === undefined) return 'known'
    const read = readReport(text, askedOf(work, task))
    if (!read.ok) throw violation(read.problem)
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
        asked: {
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
    if (work === undefined) throw violation('in_reply_to: there is no task of yours that this is about')
    const completion = {
      ...COMPLETION,
      message_id: `${message.id}-completion`,
      timestamp: message.at,
      from_agent: message.from,
      in_reply_to: work.id,
    }
    const asked = askedOf(work, { id: formatId('task', work.task ?? 0), createdAt: clock.now() })
    const said = { ...(JSON.parse(text) as object), in_reply_to: work.id }
    const read = readReport(JSON.stringify([said, completion]), asked)
    if (!read.ok) throw violation(read.problem)
    const [refused] = read.report.refused
    if (refused !== undefined) throw violation(`${refused.type}: ${refused.why}`)
    const { rationale } = message
    await store.write(async (tx) => {
      for (const proposal of read.report.byApproval)
        await proposals.propose(tx, { work, proposal, rationale, requiresHitl: true, wantsReview: false })
    })
    proposed()
  }

  return async (agent: string, message: TeamMessage, text: string): Promise<Told> => {
    const told: Told = { status: 'accepted', message_id: message.id }
    switch (message.type) {
      case 'task_delegation':
        throw new AppError(
          'FORBIDDEN',
          'Agents of the GitHub team get their tasks from the orchestrator only (S3.1)',
        )
      case 'agent_health_check':
        health.heard(agent, message)
        return told
      case 'task_completion':
        return { ...told, status: await complete(agent, message.inReplyTo, message.id, text) }
      case 'coc_violation_flag':
        await flag(agent, message, text)
        return told
      case 'hitl_approval_request':
        await ask(agent, message, text)
        return told
    }
  }
}

/** A request for approval stands alone; what it is part of says nothing more. */
const COMPLETION = {
  message_type: 'task_completion',
  to_agent: 'orchestrator',
  status: 'success',
  confidence_score: 1,
  actions_taken: [],
  rationale: '',
}
