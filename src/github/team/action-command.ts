import { z } from 'zod'
import { ORCHESTRATOR } from '../../base/agent.ts'
import { AppError } from '../../base/errors.ts'
import { formatId } from '../../base/ids.ts'
import type { AddedCommand, Handler } from '../../commands/commands.ts'
import { defineCommand } from '../../protocol/command.ts'
import { checkAction, describeAction, numberOf } from '../core/action.ts'
import { judgeProposal } from '../core/policy.ts'
import { changeAction, findAction } from '../store/actions.ts'
import { ACTION_KINDS } from '../terms.ts'
import { AUDIT, type TeamPeople } from './parts.ts'

export const GITHUB_ACTION = 'github_action'

const number = z.coerce.number<number | string>().int().min(1).optional()
const text = z.string().optional()

/** The command that people approve, reject or change: as for every held command, approvers, quorum, hash and expiry apply. */
const definition = defineCommand({
  type: GITHUB_ACTION,
  summary: 'Perform a proposed action on GitHub',
  hidden: true,
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

interface GithubActionOptions {
  redact(text: string): string
  readonly findRequest: TeamPeople['find']
}

export function createGithubAction({ redact, findRequest }: GithubActionOptions): AddedCommand {
  const handler: Handler<ActionFields> = {
    /** Only an approval performs it; agents cannot send it. */
    async before() {
      return new AppError('FORBIDDEN', 'Agents cannot act on GitHub', {
        hint: 'Propose the action in the report of your task.',
      })
    },
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
      // With a changed key, this approval would perform a proposal that other people are still asked about.
      const request = row.request === null ? undefined : await findRequest(tx, row.request)
      if (request === undefined || request.state === 'open')
        return new AppError('INVALID_COMMAND', 'The key of a proposal cannot be changed')
      const read = checkAction(kind, fields)
      if (!read.ok) return new AppError('INVALID_COMMAND', read.error)
      const what = describeAction(read.value)
      const isOther = JSON.stringify(read.value) !== row.action
      tx.audit({
        type: AUDIT.logged,
        class: 'public',
        actor: ORCHESTRATOR,
        subject: row.agent,
        text: `People approved${row.request === null ? '' : ` ${formatId('req', row.request)}`}${isOther ? ', changed' : ''}: ${what} in ${repository}`,
        data: { key, repository },
      })
      const number = numberOf(read.value)
      await changeAction(tx, key, {
        ...{ state: 'ready', action: JSON.stringify(read.value), notBefore: tx.now },
        ...(number === undefined ? {} : { number }),
      })
      return { status: 'ok', result: 'the action is queued', details: { key } }
    },
  }
  return { definition, handler: handler as unknown as Handler }
}
