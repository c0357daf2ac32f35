import { OPERATOR } from '../../model/agent.ts'
import type { FieldsOf } from '../../model/command.ts'
import { AppError } from '../../model/errors.ts'
import type { Decision } from '../../model/rule.ts'
import { decideAction, decideSend, strictest } from '../../rules/decide.ts'
import { declaredCheck } from '../checks.ts'
import type { Handler } from '../handler.ts'
import { unknownAgent } from '../identity.ts'
import { ownTask, remember } from '../references.ts'
import { refusalError } from '../tasks.ts'
import type { Team } from '../team.ts'

/** From parent to child (S2.2), and wherever rules.allow names the pair; a person may delegate to everyone. */
export const delegateHandler: Handler<FieldsOf<'delegate'>> = {
  decide({ team, speaker }, fields) {
    const to = team.resolve(fields.to)
    if (to === undefined) return unknownAgent(team, fields.to)
    const { messageBytes } = team.config.limits
    const bytes = Buffer.byteLength(fields.task) + Buffer.byteLength(JSON.stringify(fields.context ?? {}))
    if (bytes > messageBytes) {
      return new AppError('TOO_LARGE', `The task is ${bytes} bytes; it holds at most ${messageBytes}`, {
        hint: 'Put the details into a file and name its path.',
      })
    }
    const edge = decideEdge(team, speaker.name, to)
    if (declared(team, fields.checks).length === 0) return edge
    return strictest(edge, decideAction(team.rules, speaker.name, 'declare_checks'))
  },

  async handle(context, fields) {
    const { team, tx, speaker, parts } = context
    const to = team.resolve(fields.to)!
    const parent = await ownTask(context, fields.in_response_to)
    if (parent instanceof AppError) return parent
    const commands = new Set(declared(team, fields.checks))
    const delegated = await parts.tasks.delegate(tx, {
      delegator: speaker.name,
      agent: to,
      text: fields.task,
      context: fields.context ?? {},
      requiresResponse: fields.requires_response,
      checks: (fields.checks ?? []).map((check) => (commands.has(check) ? declaredCheck(check) : check)),
      ...(fields.timeout_seconds === undefined ? {} : { timeoutMs: fields.timeout_seconds * 1000 }),
      ...(parent === undefined ? {} : { parent }),
    })
    if (!delegated.ok) return refusalError(delegated)
    const { id } = delegated.task
    await remember(context, fields.message_id, id)
    if (parent !== undefined) parts.tasks.spoke(tx, speaker.name, parent.id)
    return { status: 'ok', result: `${id} is delegated to ${to}`, details: { task_id: id, to } }
  },
}

/** What is no check of orc.yaml is a command. */
function declared({ config }: Team, checks: readonly string[] | undefined): string[] {
  return (checks ?? []).filter((check) => !Object.hasOwn(config.tasks.checks, check))
}

function decideEdge(team: Team, from: string, to: string): Decision {
  const send = decideSend(team.rules, from, to)
  if (from === OPERATOR || send.verdict === 'deny') return send
  const isChild = team.config.agents.find(({ name }) => name === to)?.parent === from
  if (isChild || send.rule.startsWith('rules.allow')) return send
  const children = team.config.agents.filter(({ parent }) => parent === from).map(({ name }) => name)
  const whom = children.length === 0 ? 'nobody' : children.join(', ')
  return {
    verdict: 'deny',
    rule: 'built-in: delegation',
    reason: `${from} may delegate to ${whom}; ${to} does not report to it`,
  }
}
