/** Proposals of agents: the policy queues or refuses them, or people decide on them as a held `github_action` command. */
import { z } from 'zod'
import { AppError } from '../base/errors.ts'
import { formatId, parseId } from '../base/ids.ts'
import type { CommandEntry, Handler } from '../commands/commands.ts'
import type { HeldBy } from '../people/hold-command.ts'
import { askPeople, findHumanRequest, type HumanRequestRow, notifyPeople } from '../people/people.ts'
import { defineCommand } from '../protocol/command.ts'
import type { Tx } from '../store/store.ts'
import { commentAsService, escalateExpiredRequest, questionText } from './comments.ts'
import {
  type ActionProposal,
  actionKey,
  checkAction,
  describeAction,
  numberOf,
  type RepositoryAction,
} from './core/action.ts'
import { isElsewhere, judgeProposal, type PolicyDecision } from './core/policy.ts'
import { requiresHitl } from './delegate-work.ts'
import { AUDIT, type GithubDependencies, toAgent } from './dependencies.ts'
import { approverLogins, isConfidentialRole } from './roles.ts'
import { changeAction, findAction, type GithubWork, insertAction } from './store.ts'
import { ACTION_KINDS } from './team-settings.ts'

/** S3.13: after this time the action is not done, and people are notified. */
const APPROVAL_HOURS = 72
const HOUR_MS = 3600_000

interface AgentProposal {
  readonly work: GithubWork
  readonly proposal: ActionProposal
  readonly rationale: string
  readonly wantsReview: boolean
}

export type Proposals = ReturnType<typeof createProposals>

/** Applies the policy to a proposal: it is queued, people are asked, or it is refused. */
export function createProposals(deps: GithubDependencies) {
  const { store, timers, settings, redact, team } = deps

  async function propose(tx: Tx, proposed: AgentProposal): Promise<void> {
    const { work, proposal } = proposed
    const { action, confidence, rationale = proposed.rationale } = proposal
    const decision = judgeProposal(settings(), redact, proposal, {
      requiresHitl: proposal.needsApproval === true || requiresHitl(work),
      isElsewhere: isElsewhere(action, work.number),
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
      await notifyPeople(tx, { agent: work.agent, question, reason: 'the policy asks for a notice' })
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
    const { approvers } = settings()
    const held: HeldBy = {
      speaker: work.agent,
      principal: { kind: 'agent', agent: work.agent },
      onBehalf: false,
    }
    const { id, key: request } = await askPeople(tx, {
      kind: 'approval',
      purpose: 'command',
      asker: work.agent,
      question: `${work.agent} wants to ${what} in ${work.repository}`,
      // Approvers are not moderators, so they don't see the words of a confidential role (S3.15).
      reason: isConfidential ? decision.reason : `${decision.reason}. ${redact(rationale)}`,
      action: { type: GITHUB_ACTION, fields: { key, action: kind, repository: work.repository, ...fields } },
      approval: { quorum: decision.quorum, ...(approvers === undefined ? {} : { approvers }) },
      context: JSON.stringify({ ...held, github: key }),
      expiresAt: tx.now + Math.round(hours * HOUR_MS),
      timers,
    })
    changeAction(tx, key, { state: 'asked', request })
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
    const thread = { source: `${work.id}/ask/${id}`, repository: work.repository, number }
    await commentAsService(tx, thread, text, approverLogins(team()))
  }

  function log(
    tx: Tx,
    { work, proposal }: Pick<AgentProposal, 'work' | 'proposal'>,
    text: string,
    type: string = AUDIT.logged,
  ) {
    tx.audit({
      ...toAgent(work.agent),
      type,
      text,
      ...(proposal.confidence === undefined ? {} : { confidence: proposal.confidence }),
      data: { work: work.id, repository: work.repository },
    })
  }

  /** Refuses a proposal that people rejected or did not decide in time, with a public audit entry. */
  async function close(request: string): Promise<void> {
    await store.write(async (tx) => {
      const row = await findHumanRequest(tx, parseId('req', request) ?? 0)
      const key = row && proposalOf(row)
      if (row === undefined || key === undefined) return
      const proposed = await findAction(tx, key)
      if (proposed?.state !== 'asked' || row.state === 'open') return
      changeAction(tx, key, { state: 'refused', note: `${request} ${row.state}` })
      const { agent, repository, action } = proposed
      const what = describeAction(JSON.parse(action) as RepositoryAction)
      tx.audit({
        ...toAgent(agent),
        type: AUDIT.logged,
        text: `Not done, ${request} is ${row.state}: ${what} in ${repository}`,
        data: { request_id: request, key, repository },
      })
      if (row.state === 'expired') await escalateExpiredRequest(deps, tx, row, proposed, what)
    })
  }

  return { propose, close }
}

/** The key of the proposal that a request asks about; undefined for a request of another feature. */
export function proposalOf({ context }: Pick<HumanRequestRow, 'context'>): string | undefined {
  const { github } = JSON.parse(context) as { github?: unknown }
  return typeof github === 'string' ? github : undefined
}

const STATES = { act: 'ready', ask: 'asked', refuse: 'refused' } as const

const GITHUB_ACTION = 'github_action'

const number = z.coerce.number<number | string>().int().min(1).optional()
const text = z.string().optional()

/** The command that people approve, reject or change: as for every held command, approvers, quorum, hash and expiry apply. */
const definition = defineCommand({
  type: GITHUB_ACTION,
  summary: 'Perform a proposed action on GitHub',
  audience: 'nobody',
  fields: z.object({
    key: z.string().describe('Key of the proposal'),
    action: z.enum(ACTION_KINDS).describe(ACTION_KINDS.join(', ')),
    repository: z.string().describe('OWNER/NAME'),
    number,
    label: text,
    body: text,
    branch: text,
    head: text,
    base: text,
    title: text,
    duplicate_of: number,
    reason: text,
    message: text,
    files: z.array(z.object({ path: z.string(), content: z.string() })).optional(),
  }),
  example: '',
})

type ActionFields = z.output<typeof definition.fields>

/** Holds a proposed action until people decide on it. */
export function githubCommands(redact: (text: string) => string): CommandEntry[] {
  const handler: Handler<ActionFields> = {
    /** A changed proposal is judged again, so that no change bypasses a quorum or a prohibition. */
    decide({ team }, { key: _, action: kind, repository: __, ...fields }) {
      const settings = team.config.github
      if (settings === undefined)
        return new AppError('NOT_FOUND', 'orc.yaml no longer has a "github" section')
      const read = checkAction(kind, fields)
      if (!read.ok) return new AppError('INVALID_COMMAND', read.error)
      const proposal = { action: read.value, confidence: undefined }
      const decision = judgeProposal(settings, redact, proposal, { requiresHitl: true, wantsReview: false })
      const rule = 'built-in: github'
      if (decision.verdict === 'refuse') return { verdict: 'deny', rule, reason: decision.reason }
      const { approvers } = settings
      const approval = {
        quorum: decision.verdict === 'ask' ? decision.quorum : 1,
        ...(approvers === undefined ? {} : { approvers }),
      }
      return { verdict: 'ask', rule, reason: 'people decide on this proposal', approval }
    },
    async handle({ tx }, { key, action: kind, repository, ...fields }) {
      const row = await findAction(tx, key)
      if (row === undefined) return new AppError('NOT_FOUND', 'Unknown proposal')
      if (row.state !== 'asked') return new AppError('CONFLICT', `The proposal is already ${row.state}`)
      if (row.repository !== repository)
        return new AppError('INVALID_COMMAND', 'The repository cannot be changed')
      // A changed key would perform a proposal that people have not decided on.
      const request = row.request === null ? undefined : await findHumanRequest(tx, row.request)
      if (request === undefined || request.state === 'open')
        return new AppError('INVALID_COMMAND', 'The key of a proposal cannot be changed')
      const read = checkAction(kind, fields)
      if (!read.ok) return new AppError('INVALID_COMMAND', read.error)
      const what = describeAction(read.value)
      const isOther = JSON.stringify(read.value) !== row.action
      tx.audit({
        ...toAgent(row.agent),
        type: AUDIT.logged,
        text: `People approved${row.request === null ? '' : ` ${formatId('req', row.request)}`}${isOther ? ', changed' : ''}: ${what} in ${repository}`,
        data: { key, repository },
      })
      const number = numberOf(read.value)
      changeAction(tx, key, {
        ...{ state: 'ready', action: JSON.stringify(read.value), notBefore: tx.now },
        ...(number === undefined ? {} : { number }),
      })
      return { status: 'ok', result: 'the action is queued', details: { key } }
    },
  }
  return [{ definition, handler: handler as unknown as Handler }]
}
