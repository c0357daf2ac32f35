import { OPERATOR } from '../../base/agent.ts'
import { AppError } from '../../base/errors.ts'
import type { Handler, HandlerContext } from '../../commands/commands.ts'
import { unknownAgent } from '../../commands/identity.ts'
import { countOpen } from '../../messages/deliveries.ts'
import { readLog, wireMail, withinBytes } from '../../messages/messages.ts'
import type { FieldsOf } from '../../protocol/command.ts'
import { decideAction, readableLogs } from '../../rules/decide.ts'
import type { Store } from '../../store/store.ts'
import { type RosterSources, rosterOf } from '../agents.ts'

const TEN_MINUTES = 10 * 60_000
const LOG_LENGTH = 200

type QueryStateFields = FieldsOf<'query_state'>

interface QueryStateOptions extends RosterSources {
  store: Pick<Store, 'engine' | 'daemon'>
}

export const queryStateHandler = (options: QueryStateOptions): Handler<QueryStateFields> => ({
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
    return await QUERIES[fields.query](context, fields, options)
  },
})

type StateQuery = (
  context: HandlerContext,
  fields: QueryStateFields,
  options: QueryStateOptions,
) => ReturnType<Handler<QueryStateFields>['handle']>

const QUERIES: Record<QueryStateFields['query'], StateQuery> = {
  async active_agents(context, fields, options) {
    const agents = (await selected(context, fields, options)).filter((agent) => agent.session !== 'exited')
    return { status: 'ok', result: `${agents.length} active`, details: { agents } }
  },

  /** An agent sees its own messages, and those of others as the rules allow (S1.14). */
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

  async global_status(context, fields, options) {
    const { tx } = context
    const agents = await selected(context, fields, options)
    const names = new Set(agents.map((agent) => agent.name))
    const deliveries = (await countOpen(tx)).filter((row) => names.has(row.agent))
    return {
      status: 'ok',
      result: counted(agents.length, 'agent'),
      details: { agents, deliveries, service: { store: options.store.engine, daemon: options.store.daemon } },
    }
  },
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

async function selected({ tx, team }: HandlerContext, fields: QueryStateFields, sources: RosterSources) {
  const roster = await rosterOf(tx, team, sources)
  if (fields.filter === 'specific_agent') {
    const name = team.resolve(fields.agent!)
    return roster.filter((agent) => agent.name === name)
  }
  if (fields.filter === 'last_10_minutes') {
    return roster.filter((agent) => Date.parse(agent.updated_at) >= tx.now - TEN_MINUTES)
  }
  return roster
}

export const listAgentsHandler = (sources: RosterSources): Handler<FieldsOf<'list_agents'>> => ({
  looksOnly: true,
  async handle({ tx, team }) {
    const agents = await rosterOf(tx, team, sources)
    return { status: 'ok', result: counted(agents.length, 'agent'), details: { agents } }
  },
})
