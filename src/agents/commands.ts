import { OPERATOR } from '../base/agent.ts'
import { AppError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import { builtInEntries, type CommandEntry, type Handler, type HandlerContext } from '../commands/commands.ts'
import { decideSubject, saidBy, subjectAllowed, unknownAgent } from '../commands/identity.ts'
import { countOpen } from '../messages/delivery-states.ts'
import { readLog, wireMail, withinBytes } from '../messages/messages.ts'
import type { AgentAction, FieldsOf } from '../protocol/command.ts'
import type { Receipt } from '../protocol/receipt.ts'
import { decideAction, readableLogs } from '../rules/decide.ts'
import type { Store, Tx } from '../store/store.ts'
import { type RosterSources, rosterOf } from './agents.ts'
import { type AgentCommandsForPeopleOptions, agentCommandsForPeople } from './people-commands.ts'
import type { Sessions } from './sessions.ts'
import { declareStatus, setPaused } from './store.ts'
import type { ContextUsage, UsageTracker } from './usage-and-limits.ts'

const TEN_MINUTES = 10 * 60_000
const LOG_LENGTH = 200

type QueryStateFields = FieldsOf<'query_state'>

interface QueryStateOptions extends RosterSources {
  store: Pick<Store, 'engine' | 'daemon'>
}

const queryStateHandler = (options: QueryStateOptions): Handler<QueryStateFields> => ({
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
) => Promise<Receipt | AppError> | Receipt | AppError

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
    // The newest messages that fit into a response, oldest first.
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

const listAgentsHandler = (sources: RosterSources): Handler<FieldsOf<'list_agents'>> => ({
  looksOnly: true,
  async handle({ tx, team }) {
    const agents = await rosterOf(tx, team, sources)
    return { status: 'ok', result: counted(agents.length, 'agent'), details: { agents } }
  },
})

interface RequestActionOptions {
  sessions: Pick<Sessions, 'impossible' | 'start' | 'stop' | 'reset' | 'setPaused'>
  usageTracker: Pick<UsageTracker, 'grant'>
  log: Log
}

/** Privileged: denied unless a rule allows it, or says to ask a person (C15). */
const requestActionHandler = (options: RequestActionOptions): Handler<FieldsOf<'request_action'>> => ({
  decide({ team, speaker }, fields) {
    const target = team.resolve(fields.target)
    if (target === undefined) return unknownAgent(team, fields.target)
    if (speaker.name === OPERATOR) return { verdict: 'allow', rule: 'built-in: the operator', reason: '' }
    return decideAction(team.rules, speaker.name, fields.action, target)
  },

  async handle(context, fields) {
    const { team, tx, speaker } = context
    const target = team.resolve(fields.target)!
    const impossible = options.sessions.impossible(target, fields.action)
    if (impossible !== undefined) {
      return new AppError('CONFLICT', impossible.reason, { hint: impossible.hint })
    }
    tx.audit({
      type: `action.${fields.action}`,
      class: 'internal',
      actor: speaker.name,
      subject: target,
      text: `${fields.action} ${target}${fields.reason === undefined ? '' : `: ${fields.reason}`}`,
      data: { action: fields.action, target, reason: fields.reason ?? null, ...saidBy(speaker) },
    })
    return await ACTS[fields.action](options, tx, target)
  },
})

type Act = (options: RequestActionOptions, tx: Tx, target: string) => Promise<Receipt>

/** Sessions change after the commit, so that the audit entry is stored first. */
const ACTS: Record<AgentAction, Act> = {
  spawn_agent: afterCommit('starting', ({ sessions }, target) => sessions.start(target)),
  terminate_agent: afterCommit('stopping', ({ sessions }, target) => sessions.stop(target)),
  reset_session: afterCommit('restarting with a new conversation', ({ sessions }, target) =>
    sessions.reset(target),
  ),
  pause_session: setPausedAct(true),
  resume_session: setPausedAct(false),
}

function afterCommit(
  doing: string,
  act: (options: RequestActionOptions, target: string) => Promise<void>,
): Act {
  return async (options, tx, target) => {
    tx.afterCommit(() => {
      act(options, target).catch((error: unknown) =>
        options.log.error({ agent: target, err: error }, `${target}: ${doing} failed`),
      )
    })
    return { status: 'ok', result: `${target} is ${doing}`, details: { target } }
  }
}

/** A pause holds deliveries and interrupts nothing (S1.24). */
function setPausedAct(paused: boolean): Act {
  return async ({ sessions, usageTracker }, tx, target) => {
    setPaused(tx, target, paused)
    if (!paused) await usageTracker.grant(tx, target)
    tx.afterCommit(() => sessions.setPaused(target, paused))
    return {
      status: 'ok',
      result: `${target} is ${paused ? 'paused' : 'resumed'}`,
      details: { target, paused },
    }
  }
}

const updateStatusHandler: Handler<FieldsOf<'update_status'>> = {
  whileHalted: true,
  decide: decideSubject,
  async handle(context, fields, definition) {
    const { tx, speaker } = context
    const agent = subjectAllowed(context, fields, definition)
    const task = fields.current_task ?? null
    declareStatus(tx, agent, fields.status, task)
    tx.audit({
      type: 'agent.status',
      class: 'internal',
      actor: speaker.name,
      ...(agent === speaker.name ? {} : { subject: agent }),
      text: `${agent} is ${fields.status}${task === null ? '' : `: ${task}`}`,
      data: { agent, status: fields.status, current_task: task, ...saidBy(speaker) },
    })
    return { status: 'ok', result: `${agent} is ${fields.status}`, details: { agent, status: fields.status } }
  },
}

/** Reports the context usage from the records of the agent's program (C26). */
const contextStatusHandler = (
  usageTracker: Pick<UsageTracker, 'context' | 'spent'>,
): Handler<FieldsOf<'context_status'>> => ({
  looksOnly: true,
  decide: decideSubject,
  async handle(context, fields, definition) {
    const agent = subjectAllowed(context, fields, definition)
    const known = usageTracker.context(agent)
    const spent = usageTracker.spent(agent)
    return {
      status: 'ok',
      result: describeContext(agent, known),
      details: { agent, ...(known ?? { level: 'unknown' }), ...(spent === 0 ? {} : { spent }) },
    }
  },
})

const ADVICE = { ok: '', unknown: '', warning: '; it is getting full', critical: '; it is nearly full' }

function describeContext(agent: string, known: ContextUsage | undefined): string {
  if (known?.tokens === undefined) return `${agent}'s program has not reported its context usage yet`
  const share = known.percent === undefined ? '' : ` (${known.percent} % of ${known.window})`
  const lines = known.lines === undefined ? '' : `, ${known.lines} lines`
  return `${known.tokens} tokens${share}${lines}${ADVICE[known.level]}`
}

type AgentCommandsOptions = QueryStateOptions &
  RequestActionOptions &
  AgentCommandsForPeopleOptions & {
    usageTracker: Pick<UsageTracker, 'context' | 'spent'>
  }

export function agentCommands(options: AgentCommandsOptions): CommandEntry[] {
  return [
    ...builtInEntries({
      update_status: updateStatusHandler,
      context_status: contextStatusHandler(options.usageTracker),
      request_action: requestActionHandler(options),
      query_state: queryStateHandler(options),
      list_agents: listAgentsHandler(options),
    }),
    ...agentCommandsForPeople(options),
  ]
}
