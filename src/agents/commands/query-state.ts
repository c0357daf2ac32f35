import { OPERATOR } from '../../base/agent.ts'
import { AppError } from '../../base/errors.ts'
import type { HandlerContext } from '../../commands/context.ts'
import type { Handler } from '../../commands/handler.ts'
import { unknownAgent } from '../../commands/identity.ts'
import { countOpen } from '../../messages/store/deliveries.ts'
import { readLog } from '../../messages/store/messages.ts'
import { wireMail, withinBytes } from '../../messages/wire-mail.ts'
import type { FieldsOf } from '../../protocol/command.ts'
import { decideAction, readableLogs } from '../../rules/decide.ts'
import { rosterOf } from '../roster.ts'

const TEN_MINUTES = 10 * 60_000
const LOG_LENGTH = 200

type Fields = FieldsOf<'query_state'>

export const queryStateHandler: Handler<Fields> = {
  looksOnly: true,
  decide({ team, speaker }, fields) {
    // C16.
    if (fields.filter === 'specific_agent') {
      if (fields.agent === undefined) {
        return new AppError('INVALID_COMMAND', 'query_state: filter specific_agent needs an agent', {
          hint: `Add the agent's name. Agents: ${team.names.join(', ')}.`,
        })
      }
      if (team.resolve(fields.agent) === undefined) return unknownAgent(team, fields.agent)
    }
    return decideAction(team.rules, speaker.name, 'query_state')
  },

  async handle(context, fields) {
    return await QUERIES[fields.query](context, fields)
  },
}

type Query = (context: HandlerContext, fields: Fields) => ReturnType<Handler<Fields>['handle']>

const QUERIES: Record<Fields['query'], Query> = {
  async active_agents(context, fields) {
    const agents = (await selected(context, fields)).filter((agent) => agent.session !== 'exited')
    return { status: 'ok', result: `${agents.length} active`, details: { agents } }
  },

  /** Everyone sees its own messages; those of others only as the rules say (S1.14). */
  async communication_log({ tx, team, speaker }, fields) {
    const readable = speaker.name === OPERATOR ? 'all' : readableLogs(team.rules, speaker.name)
    const agent = fields.filter === 'specific_agent' ? team.resolve(fields.agent!) : undefined
    const newest = await readLog(tx, {
      ...(fields.filter === 'last_10_minutes' ? { since: tx.now - TEN_MINUTES } : {}),
      ...(agent === undefined ? {} : { agent }),
      ...(readable === 'all' ? {} : { parties: [...new Set([speaker.name, ...readable])] }),
      limit: LOG_LENGTH,
    })
    // The newest that fit into an answer, oldest first.
    const messages = withinBytes(newest.toReversed()).toReversed()
    return {
      status: 'ok',
      result: `${counted(messages.length, 'message')}${newest.length === LOG_LENGTH || messages.length < newest.length ? ', the newest' : ''}`,
      details: { messages: messages.map(wireMail) },
    }
  },

  async global_status(context, fields) {
    const { tx, parts } = context
    const agents = await selected(context, fields)
    const names = new Set(agents.map((agent) => agent.name))
    const deliveries = (await countOpen(tx)).filter((row) => names.has(row.agent))
    return {
      status: 'ok',
      result: counted(agents.length, 'agent'),
      details: { agents, deliveries, service: { store: parts.store.engine, daemon: parts.store.daemon } },
    }
  },
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

async function selected({ tx, team, parts }: HandlerContext, fields: Fields) {
  const roster = await rosterOf(tx, team, parts)
  if (fields.filter === 'specific_agent') {
    const name = team.resolve(fields.agent!)
    return roster.filter((agent) => agent.name === name)
  }
  if (fields.filter === 'last_10_minutes') {
    return roster.filter((agent) => Date.parse(agent.updated_at) >= tx.now - TEN_MINUTES)
  }
  return roster
}

export const listAgentsHandler: Handler<FieldsOf<'list_agents'>> = {
  looksOnly: true,
  async handle({ tx, team, parts }) {
    const agents = await rosterOf(tx, team, parts)
    return { status: 'ok', result: counted(agents.length, 'agent'), details: { agents } }
  },
}
