import { ORCHESTRATOR } from '../../base/agent.ts'
import { formatId } from '../../base/ids.ts'
import type { Tx } from '../../store/store.ts'
import {
  type ActionProposal,
  actionKey,
  describeAction,
  numberOf,
  type RepositoryAction,
} from '../core/action.ts'
import { questionText } from '../core/approval-question.ts'
import { judgeProposal, type PolicyDecision } from '../core/policy.ts'
import { isConfidentialRole } from '../core/roles.ts'
import { insertAction, linkRequest } from '../store/actions.ts'
import type { GithubWork } from '../store/work.ts'
import { GITHUB_ACTION } from './action-command.ts'
import { AUDIT, type GithubParts } from './parts.ts'
import { commentAsService } from './service-comments.ts'
import { approverLogins } from './settings.ts'

/** S3.13: after this time the action is not done, and people are notified. */
const APPROVAL_HOURS = 72
const HOUR_MS = 3600_000

interface AgentProposal {
  readonly work: GithubWork
  readonly proposal: ActionProposal
  readonly rationale: string
  readonly requiresHitl: boolean
  readonly wantsReview: boolean
}

export type Proposals = ReturnType<typeof createProposals>

/** Applies the policy to a proposal: it is queued, people are asked, or it is refused. */
export function createProposals({ settings, people, redact, team }: GithubParts) {
  async function propose(tx: Tx, proposed: AgentProposal): Promise<void> {
    const { work, proposal } = proposed
    const { action, confidence, rationale = proposed.rationale } = proposal
    const decision = judgeProposal(settings(), redact, proposal, {
      requiresHitl: proposed.requiresHitl,
      isElsewhere: isElsewhere(work, action),
      wantsReview: proposed.wantsReview,
    })
    const key = actionKey(work.id, action)
    const isNew = await insertAction(tx, {
      key,
      work: work.id,
      agent: work.agent,
      repository: work.repository,
      number: numberOf(action) ?? work.number,
      action: JSON.stringify(action),
      confidence: confidence ?? null,
      rationale: isConfidentialRole(work.role) ? '' : redact(rationale),
      state: STATES[decision.verdict],
      request: null,
      note: decision.reason,
    })
    if (!isNew) return
    const what = describeAction(action)
    if (decision.verdict === 'ask') await ask(tx, proposed, key, decision)
    else if (decision.verdict === 'refuse') log(tx, proposed, `Refused to ${what}: ${decision.reason}`)
    else if (decision.notice) {
      const question = `${work.agent} is going to ${what} in ${work.repository}`
      await people.notify(tx, { agent: work.agent, question, reason: 'the policy asks for a notice' })
    }
  }

  async function ask(
    tx: Tx,
    { work, proposal, ...report }: AgentProposal,
    key: string,
    decision: Extract<PolicyDecision, { verdict: 'ask' }>,
  ) {
    const { rationale = report.rationale, timeoutHours: hours = APPROVAL_HOURS } = proposal
    const { kind, ...fields } = proposal.action
    const what = describeAction(proposal.action)
    const isConfidential = isConfidentialRole(work.role)
    const request = await people.ask(tx, {
      agent: work.agent,
      question: `${work.agent} wants to ${what} in ${work.repository}`,
      // Approvers are not moderators, so they don't see the words of a confidential role (S3.15).
      reason: isConfidential ? decision.reason : `${decision.reason}. ${redact(rationale)}`,
      command: { type: GITHUB_ACTION, fields: { key, action: kind, repository: work.repository, ...fields } },
      proposal: key,
      expiresAt: tx.now + Math.round(hours * HOUR_MS),
      quorum: decision.quorum,
      approvers: settings().approvers,
    })
    const id = formatId('req', request)
    await linkRequest(tx, key, request)
    const asked = `Asked people (${id}) whether to ${what}: ${decision.reason}`
    log(tx, { work, proposal }, asked, AUDIT.asked)
    // In the thread of the work if there is one: an agent must not choose where the service writes.
    const number = work.number ?? numberOf(proposal.action)
    if (number === undefined) return
    const text = questionText(
      {
        ...{ id, what, agent: work.agent, action: proposal.action, confidence: proposal.confidence },
        ...(isConfidential ? {} : { rationale }),
        reason: decision.reason,
        quorum: decision.quorum,
        hours,
      },
      redact,
    )
    const place = { source: `${work.id}/ask/${id}`, repository: work.repository, number }
    await commentAsService(tx, place, text, approverLogins(team(), settings()))
  }

  function log(
    tx: Tx,
    { work, proposal }: Pick<AgentProposal, 'work' | 'proposal'>,
    text: string,
    type: string = AUDIT.logged,
  ) {
    tx.audit({
      type,
      class: 'public',
      actor: ORCHESTRATOR,
      subject: work.agent,
      text,
      ...(proposal.confidence === undefined ? {} : { confidence: proposal.confidence }),
      data: { work: work.id, repository: work.repository },
    })
  }

  return { propose }
}

const STATES = { act: 'ready', ask: 'asked', refuse: 'refused' } as const

/** The author of an issue could talk an agent into acting on other threads. */
function isElsewhere({ number }: GithubWork, action: RepositoryAction): boolean {
  const about = numberOf(action)
  return number !== null && about !== undefined && about !== number
}
