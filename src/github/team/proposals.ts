import { ORCHESTRATOR } from '../../base/agent.ts'
import { formatId } from '../../base/ids.ts'
import type { HeldBy } from '../../people/hold-command.ts'
import { tellPeople } from '../../people/notices.ts'
import { hashOf } from '../../people/request-view.ts'
import { insertHumanRequest } from '../../people/store/human-requests.ts'
import type { Tx } from '../../store/store.ts'
import { setTimer } from '../../store/timer-rows.ts'
import { type Action, actionKey, describeAction, numberOf, type Proposal } from '../core/action.ts'
import type { Judged } from '../core/policy.ts'
import { isConfidentialRole } from '../core/roles.ts'
import { insertAction } from '../store/actions.ts'
import type { GithubWork } from '../store/work.ts'
import { GITHUB_ACTION } from './command.ts'
import { judgeProposal } from './judging.ts'
import { say } from './own-doing.ts'
import { questionText } from './question.ts'
import { AUDIT, approverLogins, type GithubParts } from './settings.ts'

/** S3.13: then it is not done, and escalated. */
const APPROVAL_HOURS = 72
const HOUR_MS = 3600_000

export interface Proposed {
  readonly work: GithubWork
  readonly proposal: Proposal
  readonly rationale: string
  readonly requiresHitl: boolean
  readonly wantsReview: boolean
}

export type Proposals = ReturnType<typeof createProposals>

/** What becomes of what agents propose: it is done, asked about, or refused. */
export function createProposals({ settings, timers, redact, team }: GithubParts) {
  async function propose(tx: Tx, proposed: Proposed): Promise<void> {
    const { work, proposal } = proposed
    const { action, confidence, rationale = proposed.rationale } = proposal
    const judged = judgeProposal(settings(), redact, proposal, {
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
      state: STATES[judged.verdict],
      request: null,
      note: judged.reason,
    })
    if (!isNew) return
    const what = describeAction(action)
    if (judged.verdict === 'ask') await ask(tx, proposed, key, judged)
    else if (judged.verdict === 'refuse') note(tx, proposed, `Refused to ${what}: ${judged.reason}`)
    else if (judged.notice) {
      const question = `${work.agent} goes on to ${what} in ${work.repository}`
      await tellPeople(tx, { agent: work.agent, question, reason: 'the policy wants people to know' })
    }
  }

  async function ask(
    tx: Tx,
    { work, proposal, ...about }: Proposed,
    key: string,
    judged: Extract<Judged, { verdict: 'ask' }>,
  ) {
    const { rationale = about.rationale, timeoutHours: hours = APPROVAL_HOURS } = proposal
    const { kind, ...fields } = proposal.action
    const command = {
      type: GITHUB_ACTION,
      fields: { key, action: kind, repository: work.repository, ...fields },
    }
    const action = JSON.stringify(command)
    const held: HeldBy = {
      speaker: work.agent,
      principal: { kind: 'agent', agent: work.agent },
      onBehalf: false,
    }
    const what = describeAction(proposal.action)
    const { approvers } = settings()
    const expiresAt = tx.now + Math.round(hours * HOUR_MS)
    const bound = { asker: work.agent, context: JSON.stringify({ ...held, github: key }), action }
    const request = await insertHumanRequest(tx, {
      kind: 'approval',
      purpose: 'command',
      ...bound,
      question: `${work.agent} wants to ${what} in ${work.repository}`,
      // What it says of people is for moderators, and this is for all who decide (S3.15).
      reason: isConfidentialRole(work.role) ? judged.reason : `${judged.reason}. ${redact(rationale)}`,
      action_hash: hashOf(bound),
      expires_at: expiresAt,
      approvers: approvers === undefined ? null : JSON.stringify(approvers),
      quorum: judged.quorum,
    })
    const id = formatId('req', request)
    await tx.run('UPDATE github_actions SET request = ? WHERE key = ?', [request, key])
    await setTimer(tx, 'expire_request', id, expiresAt)
    tx.afterCommit(() => timers.setFor(expiresAt))
    tx.audit({
      type: 'human.asked',
      class: 'internal',
      actor: work.agent,
      text: `${id}: ${work.agent} wants to ${what} (${judged.reason})`,
      data: {
        request_id: id,
        kind: 'approval',
        command: GITHUB_ACTION,
        action_hash: hashOf(bound),
        quorum: judged.quorum,
      },
    })
    note(tx, { work, proposal }, `Asked people (${id}) whether to ${what}: ${judged.reason}`, AUDIT.asked)
    // Where it was asked, or else where it would be done. Nobody gets a thread written to by naming it.
    const number = work.number ?? numberOf(proposal.action)
    if (number === undefined) return
    const text = questionText(
      {
        ...{ id, what, agent: work.agent, action: proposal.action, confidence: proposal.confidence },
        words: isConfidentialRole(work.role) ? undefined : { rationale },
        reason: judged.reason,
        quorum: judged.quorum,
        hours,
      },
      redact,
    )
    const place = { source: `${work.id}/ask/${id}`, repository: work.repository, number }
    await say(tx, place, text, approverLogins(team(), settings()))
  }

  function note(
    tx: Tx,
    { work, proposal }: Pick<Proposed, 'work' | 'proposal'>,
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

/** Whoever can write an issue can try to talk an agent into something about all the others. */
function isElsewhere({ number }: GithubWork, action: Action): boolean {
  const about = numberOf(action)
  return number !== null && about !== undefined && about !== number
}
