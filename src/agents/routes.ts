import { stripVTControlCharacters } from 'node:util'
import type { AnswerOf } from '../api/contract.ts'
import { type ApiContext, isInTeam, type RouteHandler, SENT } from '../api/handle-request.ts'
import { formatEvent, startEventStream } from '../api/sse.ts'
import { AppError } from '../base/errors.ts'
import { namedAgent, visibleAgent } from '../commands/identity.ts'
import { operatorOr } from '../commands/team.ts'
import { AGENT_ACTIONS } from '../protocol/command.ts'
import { decideSend, explain } from '../rules/decide.ts'
import type { TerminalSnapshot } from '../runtimes/runtime.ts'
import { rosterOf } from './agents.ts'
import { notWorking } from './people-commands.ts'
import { type ScreenSnapshot, type TerminalHolder, terminalHolder } from './terminals.ts'

export const listAgents: RouteHandler<'agents'> = async ({ engine }) => ({
  agents: await rosterOf(engine.store, engine.team(), engine),
})

export const showTerminal: RouteHandler<'terminal'> = async ({ engine }, call) => {
  const { params, query } = call
  const agent = visibleAgent(engine.team(), call.caller.principal, params.agent!)
  const session = engine.sessions.session(agent)
  if (session === undefined) {
    throw new AppError('CONFLICT', `${agent} is not running here`, {
      hint: hasNoRuntime(engine.team(), agent)
        ? `It has runtime none, so you run it yourself. To see what it does here: orc audit --agent ${agent} --follow`
        : `Start it: orc agent start ${agent}`,
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
  const agent = visibleAgent(engine.team(), call.caller.principal, call.params.agent!)
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
      hint: "Send it with the agent's own token, which its program has as ORC_TOKEN. `orc token create AGENT` creates one.",
    },
  )
}

export const listTokens: RouteHandler<'tokens'> = async ({ engine }) => ({
  tokens: await engine.tokens.list(),
})

/** Streams an agent's terminal: each event holds the rows that changed. */
export const streamTerminal: RouteHandler<'terminalEvents'> = async (context, call) => {
  const { engine, openCalls } = context
  const { screens, terminals } = engine
  const agent = visibleAgent(engine.team(), call.caller.principal, call.params.agent!)
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
    ...(call.query.for === 'show'
      ? [terminals.watch(agent, terminalHolder(call.callerName, call.caller.principal), due)]
      : []),
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
      visibleAgent(engine.team(), call.caller.principal, agent)
      const holds = terminals.holder(agent)
      if (snapshot !== undefined && (snapshot !== shown || holds !== holder)) {
        const frame = frameOf(shown, snapshot, holds, call.caller.principal.tokenId)
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
  tokenId: string | undefined,
): AnswerOf<'terminalEvents'> {
  return {
    session,
    ...(holder === undefined ? {} : { taken_by: holder.name, taken_here: holder.tokenId === tokenId }),
    can_take_over: canTakeOver,
    columns: picture.columns,
    height: picture.rows.length,
    ...(picture.cursor === undefined ? {} : { cursor: picture.cursor }),
    rows: changedRows(before?.picture, picture),
  }
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
