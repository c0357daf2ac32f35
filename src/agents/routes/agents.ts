import { stripVTControlCharacters } from 'node:util'
import type { AnswerOf } from '../../api/contract.ts'
import {
  type ApiCall,
  type ApiContext,
  isInTeam,
  namedAgent,
  operatorOr,
  type RouteHandler,
  refuseBrowser,
  SENT,
  visibleAgent,
} from '../../api/http/call.ts'
import { formatEvent, startEventStream } from '../../api/http/event-streams.ts'
import { OPERATOR } from '../../base/agent.ts'
import { AppError } from '../../base/errors.ts'
import { AGENT_ACTIONS } from '../../protocol/command.ts'
import { decideSend, explain } from '../../rules/decide.ts'
import type { TerminalSnapshot } from '../../runtimes/runtime.ts'
import { rosterOf } from '../agents.ts'
import type { ScreenSnapshot, TerminalHolder } from './terminals.ts'

export const listAgents: RouteHandler<'agents'> = async ({ engine }) => ({
  agents: await rosterOf(engine.store, engine.team(), engine),
})

export const showTerminal: RouteHandler<'terminal'> = async ({ engine }, call) => {
  const { params, query } = call
  const agent = visibleAgent(engine.team(), call, params.agent!)
  const session = engine.sessions.session(agent)
  if (session === undefined) {
    throw new AppError('CONFLICT', `${agent} is not running here`, {
      hint: hasNoRuntime(engine.team(), agent)
        ? `It has runtime none, so you run it yourself. To see what it does here: orc audit --agent ${agent} --follow`
        : `Start it: orc spawn ${agent}`,
    })
  }
  const screen = (await session.screen?.(query.lines)) ?? ''
  return {
    agent,
    session: session.state,
    screen,
    ...(session.viewCommand === undefined ? {} : { view: [...session.viewCommand] }),
  }
}

/** Orchub does not start such an agent and cannot see its screen. */
function hasNoRuntime({ config }: ReturnType<ApiContext['engine']['team']>, agent: string): boolean {
  return config.agents.find(({ name }) => name === agent)?.runtime === 'none'
}

export const showPrompt: RouteHandler<'prompt'> = ({ engine }, { params, callerName, isPerson }) => {
  const agent = namedAgent(engine.team(), params.agent!)
  if (!isPerson && agent !== callerName) {
    throw new AppError('FORBIDDEN', `Only ${agent} may read its prompt`, {
      hint: `Read your own: /api/v1/prompts/${callerName}.`,
    })
  }
  return { agent, prompt: engine.prompt(agent)! }
}

export const explainRules: RouteHandler<'explain'> = ({ engine }, { query }) => {
  const team = engine.team()
  const party = (name: string) => operatorOr(name, (one) => namedAgent(team, one))
  const { decision, steps } = explain(team.rules, party(query.from), party(query.to), query.action)
  const { approval, ...rest } = decision
  const { approvers, quorum } = approval ?? {}
  return {
    decision: {
      ...rest,
      ...(quorum === undefined
        ? {}
        : { approval: { quorum, ...(approvers === undefined ? {} : { approvers: [...approvers] }) } }),
    },
    steps: steps.map(({ approval: _, ...step }) => step),
  }
}

export const showMatrix: RouteHandler<'rulesMatrix'> = ({ engine }, { query }) => {
  const { rules, names: all } = engine.team()
  const names = all.slice(query.offset, query.offset + query.limit)
  return {
    names,
    total: all.length,
    cells: names.map((from) => names.map((to) => decideSend(rules, from, to).verdict)),
  }
}

export const interruptAgent: RouteHandler<'interrupt'> = async ({ engine }, call) => {
  const agent = namedAgent(engine.team(), call.params.agent!)
  const outcome = await engine.sessions.interrupt(agent, call.callerName)
  if (outcome !== undefined) return outcome
  const { reason, hint } = notWorking(agent)
  throw new AppError('CONFLICT', reason, { hint })
}

function notWorking(agent: string) {
  return {
    reason: `${agent} is not working, so there is nothing to interrupt`,
    hint: 'To hold back messages from it, pause it.',
  }
}

/** Lists the actions with the error that each would give now. */
export const listActions: RouteHandler<'agentActions'> = ({ engine: { sessions, team } }, call) => {
  const agent = namedAgent(team(), call.params.agent!)
  const reasons = [
    ...AGENT_ACTIONS.map((action) => ({ action, obstacle: sessions.impossible(agent, action) })),
    { action: 'interrupt' as const, obstacle: sessions.isInTurn(agent) ? undefined : notWorking(agent) },
  ]
  return {
    agent,
    actions: reasons.map(({ action, obstacle }) => ({
      action,
      possible: obstacle === undefined,
      ...obstacle,
    })),
  }
}

export const showTranscript: RouteHandler<'transcript'> = ({ engine }, call) => {
  const agent = visibleAgent(engine.team(), call, call.params.agent!)
  return {
    agent,
    said: engine.sessions.recentOutput(agent).map(({ at, text }) => ({
      at: new Date(at).toISOString(),
      text: engine.redact(stripVTControlCharacters(text)),
    })),
  }
}

/**
 * Passes a program's hook to the session of the agent whose token it carries. There is no time limit, because a person
 * may have to decide. The signal tells the session when the program disconnects, and the response tells the program
 * when the service stops.
 */
export const takeHook: RouteHandler<'hook'> = async ({ engine, openCalls }, call) => {
  if (call.isPerson) throw notAnAgent()
  const open = openCalls.open('hook', call.caller, call.outgoing)
  try {
    const answer = await Promise.race([
      engine.sessions.hook(call.callerName, call.body, open.signal),
      endOf(open.signal),
    ])
    if (answer !== undefined) return answer
    // No answer from the session: if the service ended the call, tell the program why.
    if (open.signal.reason instanceof AppError) throw open.signal.reason
    return {}
  } finally {
    open.done()
  }
}

/** Ends the wait even if the session ignores the signal. */
function endOf(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined)
    else signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
}

function notAnAgent(): AppError {
  return new AppError(
    'FORBIDDEN',
    'Only the program of an agent can send a hook, and the operator is not an agent',
    {
      hint: "Send it with the agent's own token, which its program has as ORC_TOKEN. `orc token AGENT` creates one.",
    },
  )
}

export const listTokens: RouteHandler<'tokens'> = async ({ engine }) => ({
  tokens: await engine.tokens.list(),
})

export const mintToken: RouteHandler<'mintToken'> = async ({ engine }, call) => {
  refuseBrowser(call)
  const { tokens } = engine
  const team = engine.team()
  const { agent: name } = call.body
  const person = operatorOr(name, (one) => team.person(one)?.name)
  if (person !== undefined) {
    mustBeTheOperator(call)
    const minted = await (person === OPERATOR
      ? tokens.mint(null, call.callerName)
      : tokens.mintForPerson(person, call.callerName))
    return { ...minted, agent: person }
  }
  const agent = namedAgent(team, name)
  return { ...(await tokens.mint(agent, call.callerName)), agent }
}

/** Accepts unknown names too: an agent or person removed from orc.yaml can still have tokens. */
export const revokeTokens: RouteHandler<'revokeTokens'> = async ({ engine }, call) => {
  const { tokens } = engine
  const team = engine.team()
  const given = call.params.which!
  const which = operatorOr(given, (one) => team.resolve(one) ?? team.person(one)?.name ?? one)
  const holder = await tokens.holder(which)
  const isAgents = holder === undefined ? team.resolve(which) !== undefined : holder.kind === 'agent'
  const isOwn = which === call.callerName || (holder?.kind === 'person' && holder.person === call.callerName)
  if (!isAgents && !isOwn) mustBeTheOperator(call)
  const revoked = await tokens.revoke(which, call.callerName)
  if (revoked > 0) return { revoked }
  throw new AppError(
    'NOT_FOUND',
    `There is no valid token with the id ${which.slice(0, 100)}, and no agent or person of that name has one`,
    {
      hint: 'GET /api/v1/tokens (`orc token list`) shows the valid ones.',
    },
  )
}

/** A person who could create tokens for others could approve in their name, which would defeat any quorum. */
function mustBeTheOperator({ caller, callerName }: Pick<ApiCall, 'caller' | 'callerName'>) {
  if (caller.principal.kind === 'operator') return
  throw new AppError('FORBIDDEN', `${callerName} may not create or revoke tokens of other people`, {
    hint: "This needs the operator's own token: run `orc token NAME` on the machine where the service runs.",
  })
}

/** Streams an agent's terminal: each event holds the rows that changed. */
export const streamTerminal: RouteHandler<'terminalEvents'> = async (context, call) => {
  const { engine, terminals, screens, openCalls } = context
  const agent = visibleAgent(engine.team(), call, call.params.agent!)
  const stream = startEventStream(call.outgoing, openCalls.open('events', call.caller, call.outgoing))
  let snapshot: ScreenSnapshot | undefined
  let fault: { error: unknown } | undefined
  let isDue = false
  let wake = () => {}
  const due = () => {
    isDue = true
    wake()
  }
  const stopWatching = [
    // A stream that displays nothing must not keep a take-over alive while deliveries wait for it.
    ...(call.query.for === 'show' ? [terminals.watch(agent, holderOf(call), due)] : []),
    screens.watch(agent, {
      // A slow reader gets only the newest snapshot, not everything it missed.
      onSnapshot(next) {
        snapshot = next
        due()
      },
      onFault(error) {
        fault = { error }
        due()
      },
    }),
  ]
  stream.signal.addEventListener('abort', due, { once: true })
  let shown: ScreenSnapshot | undefined
  let holder: TerminalHolder | undefined
  let count = 0
  try {
    while (!stream.signal.aborted && isInTeam(context, call)) {
      if (fault !== undefined) throw fault.error
      // A reload may have removed the permission since the stream began.
      visibleAgent(engine.team(), call, agent)
      const holds = terminals.holder(agent)
      if (snapshot !== undefined && (snapshot !== shown || holds !== holder)) {
        const frame = frameOf(shown, snapshot, holds, call.caller.token)
        stream.send(formatEvent('picture', ++count, JSON.stringify(frame)))
        shown = snapshot
        holder = holds
      }
      await stream.drained()
      if (!isDue) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      isDue = false
    }
  } catch (error) {
    if (!(error instanceof AppError && error.code === 'FORBIDDEN'))
      engine.log.warn({ agent, err: error }, 'could not stream a terminal')
  } finally {
    for (const stop of stopWatching) stop()
    stream.end()
  }
  return SENT
}

function frameOf(
  before: ScreenSnapshot | undefined,
  { session, canTakeOver, picture }: ScreenSnapshot,
  holder: TerminalHolder | undefined,
  token: string,
): AnswerOf<'terminalEvents'> {
  return {
    session,
    ...(holder === undefined ? {} : { taken_by: holder.name, taken_here: holder.token === token }),
    can_take_over: canTakeOver,
    columns: picture.columns,
    height: picture.rows.length,
    ...(picture.cursor === undefined ? {} : { cursor: picture.cursor }),
    rows: changedRows(before?.picture, picture),
  }
}

/** A second session of the same person is a different holder. */
function holderOf({ callerName, caller }: Pick<ApiCall, 'callerName' | 'caller'>): TerminalHolder {
  return { name: callerName, token: caller.token }
}

/** All rows if the size changed. */
function changedRows(
  before: TerminalSnapshot | undefined,
  { columns, rows }: TerminalSnapshot,
): [number, string][] {
  const isSameSize = before?.columns === columns && before.rows.length === rows.length
  return rows
    .map((row, index): [number, string] => [index, row])
    .filter(([index, row]) => !isSameSize || before.rows[index] !== row)
}

export const takeTerminal: RouteHandler<'takeTerminal'> = async ({ engine, terminals }, call) => {
  const agent = visibleAgent(engine.team(), call, call.params.agent!)
  await terminals.take(agent, holderOf(call))
  return { status: 'taken', by: call.callerName }
}

export const releaseTerminal: RouteHandler<'releaseTerminal'> = async ({ engine, terminals }, call) => {
  const agent = visibleAgent(engine.team(), call, call.params.agent!)
  await terminals.release(agent, holderOf(call))
  return { status: 'free' }
}

export const typeKeys: RouteHandler<'typeKeys'> = async ({ engine, terminals }, call) => {
  const agent = visibleAgent(engine.team(), call, call.params.agent!)
  const keyboard = terminals.keyboard(agent, holderOf(call))
  await (call.body.paste === true ? keyboard.paste(call.body.keys) : keyboard.type(call.body.keys))
  return { status: 'typed' }
}
