import { z } from 'zod'
import { ORCHESTRATOR } from '../../base/agent.ts'
import { AppError } from '../../base/errors.ts'
import { formatId } from '../../base/ids.ts'
import type { AddedCommand, Handler } from '../../commands/commands.ts'
import { findHumanRequest } from '../../people/store/human-requests.ts'
import { defineCommand } from '../../protocol/command.ts'
import { checkAction, describeAction, numberOf } from '../core/action.ts'
import { changeAction, findAction } from '../store/actions.ts'
import { ACTION_KINDS } from '../terms.ts'
import { judgeProposal } from './judging.ts'
import { AUDIT } from './settings.ts'

export const GITHUB_ACTION = 'github_action'

const number = z.coerce.number<number | string>().int().min(1).optional()
const text = z.string().optional()

/** What people approve, reject or change: so that approvers, quorum, hash and expiry are those of every held command. */
const definition = defineCommand({
  type: GITHUB_ACTION,
  summary: 'Do on GitHub what was proposed',
  hidden: true,
  fields: z.object({
    key: z.string().describe('Which proposal'),
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

type Fields = z.output<typeof definition.fields>

const handler = (redact: (text: string) => string): Handler<Fields> => ({
  /** Nobody says it: it is held from the beginning, and carried out by a verdict. */
  async before() {
    return new AppError('FORBIDDEN', 'An agent does nothing on GitHub by itself', {
      hint: 'Propose it in the report of your task.',
    })
  },
  /** What people make of a proposal is judged as it was: a change gets nobody past two approvers, or what is prohibited. */
  decide({ team }, { key: _, action: kind, repository: __, ...fields }) {
    const settings = team.config.github
    if (settings === undefined) return new AppError('NOT_FOUND', 'orc.yaml has no "github" any more')
    const read = checkAction(kind, fields)
    if (!read.ok) return new AppError('INVALID_COMMAND', read.problem)
    const proposal = { action: read.action, confidence: undefined }
    const judged = judgeProposal(settings, redact, proposal, { requiresHitl: true, wantsReview: false })
    const rule = 'built-in: github'
    if (judged.verdict === 'refuse') return { verdict: 'deny', rule, reason: judged.reason }
    const { approvers } = settings
    const approval = {
      quorum: judged.verdict === 'ask' ? judged.quorum : 1,
      ...(approvers === undefined ? {} : { approvers }),
    }
    return { verdict: 'ask', rule, reason: 'people decide on this proposal', approval }
  },
  async handle({ tx }, { key, action: kind, repository, ...fields }) {
    const row = await findAction(tx, key)
    if (row === undefined) return new AppError('NOT_FOUND', 'There is no such proposal')
    if (row.state !== 'asked') return new AppError('CONFLICT', `The proposal is ${row.state} already`)
    if (row.repository !== repository)
      return new AppError('INVALID_COMMAND', 'The repository cannot be changed')
    // A changed key would carry out what others are being asked about.
    const request = row.request === null ? undefined : await findHumanRequest(tx, row.request)
    if (request === undefined || request.state === 'open')
      return new AppError('INVALID_COMMAND', 'The key of a proposal cannot be changed')
    const read = checkAction(kind, fields)
    if (!read.ok) return new AppError('INVALID_COMMAND', read.problem)
    const what = describeAction(read.action)
    const isOther = JSON.stringify(read.action) !== row.action
    tx.audit({
      type: AUDIT.logged,
      class: 'public',
      actor: ORCHESTRATOR,
      subject: row.agent,
      text: `People approved${row.request === null ? '' : ` ${formatId('req', row.request)}`}${isOther ? ', changed' : ''}: ${what} in ${repository}`,
      data: { key, repository },
    })
    const number = numberOf(read.action)
    await changeAction(tx, key, {
      ...{ state: 'ready', action: JSON.stringify(read.action), notBefore: tx.now },
      ...(number === undefined ? {} : { number }),
    })
    return { status: 'ok', result: 'it is being done on GitHub', details: { key } }
  },
})

export function githubAction(redact: (text: string) => string): AddedCommand {
  return { definition, handler: handler(redact) as unknown as Handler }
}
