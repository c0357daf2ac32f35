import { rosterOf } from '../agents/agents.ts'
import { streamAudit, toEntry } from '../audit/store.ts'
import { AppError } from '../base/errors.ts'
import { personBehind } from '../commands/team.ts'
import { wireHalt } from '../halt/halt.ts'
import { countOpen } from '../messages/delivery-states.ts'
import { countOpenRequests } from '../people/people.ts'
import { type FeedEvent, feedEvent, mayKnow } from './audit-feed.ts'
import { setCookie, splitToken } from './browser-sessions.ts'
import {
  type ApiContext,
  type RouteHandler,
  refuseBrowser,
  requirePermission,
  SENT,
} from './handle-request.ts'
import { SECURITY_HEADERS, send } from './http-response.ts'
import { openApi } from './openapi.ts'
import { COMMAND_BODY_LIMITS, idempotencyKey, parseJson, readText } from './request-input.ts'
import { FEED_PAGE, resumePoint, streamFeed } from './stream-feed.ts'

export const showHealth: RouteHandler<'health'> = ({ engine }) => {
  try {
    engine.store.throwIfFailed()
  } catch {
    // This route needs no token, so it must not reveal where the store is.
    throw new AppError('STORE_UNAVAILABLE', 'The disk of the store failed', {
      hint: 'Check the disk, then restart the service. Its log has the details.',
    })
  }
  const [trouble] = engine.runs.troubles()
  return {
    status: 'ok',
    ...(engine.halt.current() === undefined ? {} : { halted: true }),
    ...(trouble === undefined
      ? {}
      : {
          trouble: trouble.isFull
            ? 'the disk is full and a run is waiting for space'
            : 'a run cannot be stored',
        }),
  }
}

export const showState: RouteHandler<'state'> = async (context, call) => {
  const { engine } = context
  const { store } = engine
  const team = engine.team()
  requirePermission(team, call, 'query_state')
  const { file, loadedAt, problem } = context.configStatus()
  const halted = engine.halt.current()
  const troubles = engine.runs.troubles()
  return {
    version: context.version,
    pid: process.pid,
    started_at: new Date(context.startedAt).toISOString(),
    // Agents must not see file paths or the content of orc.yaml.
    store: { engine: store.engine, place: call.isPerson ? context.storePlace : '', pending: store.pending() },
    config: {
      ...(file === undefined || !call.isPerson ? {} : { file }),
      loaded_at: new Date(loadedAt).toISOString(),
      ...(problem === undefined || !call.isPerson ? {} : { problem }),
    },
    ...(halted === undefined ? {} : { halt: wireHalt(halted) }),
    ...(troubles.length === 0 || !call.isPerson
      ? {}
      : { troubles: troubles.map(({ run, text }) => ({ run_id: run, text })) }),
    ...(engine.github === undefined || team.config.github === undefined
      ? {}
      : { github: await engine.github.state() }),
    agents: await rosterOf(store, team, engine),
    deliveries: await countOpen(store),
    open_requests: await countOpenRequests(store),
  }
}

export const stopService: RouteHandler<'stop'> = ({ onStop }, { body, outgoing }) => {
  // Respond first: the caller then waits for the process to end.
  outgoing.once('finish', () => onStop?.(body.agents))
  return { status: 'stopping', pid: process.pid }
}

export const showMetrics: RouteHandler<'metrics'> = async ({ metrics }, { outgoing }) => {
  const { type, text } = await metrics.render()
  send(outgoing, 200, type, text)
  return SENT
}

export const showOpenApi: RouteHandler<'openapi'> = ({ engine, version }) => openApi(engine.registry, version)

const SESSION_MS = 7 * 24 * 3600_000

export const mintLogin: RouteHandler<'mintLogin'> = ({ logins }, call) => {
  refuseBrowser(call)
  const { caller } = call
  const { code, endsAt } = logins.create(caller.principal, caller.token)
  // Browsers send no server the part after the #.
  return { path: `/#/login/${code}`, expires_at: new Date(endsAt).toISOString() }
}

export const openSession: RouteHandler<'openSession'> = async (context, { body, outgoing }) => {
  const { tokens } = context.engine
  const login = context.logins.redeem(body.code)
  // The person who requested the link may have lost access since.
  const person =
    login === undefined || tokens.authenticate(login.token) === undefined
      ? undefined
      : personBehind(context.engine.team(), login.holder)
  if (login === undefined || person === undefined) throw expiredLink()
  const { token, endsAt } = await tokens.mintSession(login.holder, SESSION_MS)
  const { cookie, header } = splitToken(token)
  outgoing.setHeader('set-cookie', setCookie(context.cookie(), cookie, SESSION_MS / 1000))
  return { name: person.name, role: person.role, half: header, expires_at: new Date(endsAt).toISOString() }
}

export const closeSession: RouteHandler<'closeSession'> = async (context, call) => {
  const { tokenId } = call.caller.principal
  if (!call.caller.isBrowser || tokenId === undefined) throw noSession()
  call.outgoing.setHeader('set-cookie', setCookie(context.cookie(), '', 0))
  await context.engine.tokens.revoke(tokenId, call.callerName)
  return { status: 'signed_out' }
}

export const showMe: RouteHandler<'me'> = ({ engine }, { caller, callerName }) => {
  const person = personBehind(engine.team(), caller.principal)
  const endsAt = engine.tokens.endsAt(caller.token)
  return {
    name: callerName,
    kind: caller.principal.kind,
    ...(person === undefined ? {} : { role: person.role }),
    ...(endsAt === undefined ? {} : { expires_at: new Date(endsAt).toISOString() }),
  }
}

function expiredLink(): AppError {
  return new AppError('UNAUTHENTICATED', 'This sign-in link was already used or has expired', {
    hint: 'Create a new one: orc open.',
  })
}

function noSession(): AppError {
  return new AppError('CONFLICT', 'The caller is not a browser session', {
    hint: 'To end a token, use `orc token revoke`.',
  })
}

export const streamEvents: RouteHandler<'events'> = async (context, call) => {
  const { caller, callerName } = call
  await streamFeed(context, call, {
    after: resumePoint(call),
    read: (after) => readPage(context, after),
    render: (events) =>
      events.reduce(
        (text, event) => (mayKnow(caller.principal, callerName, event.entry) ? text + event.text : text),
        '',
      ),
  })
  return SENT
}

/** Reads all entries, not only those the reader may see: filtering in the query could scan for long and block others. */
async function readPage({ engine }: ApiContext, after: number): Promise<FeedEvent[]> {
  const page: FeedEvent[] = []
  for await (const row of streamAudit(engine.store, { after, limit: FEED_PAGE })) {
    page.push(feedEvent(toEntry(row)))
  }
  return page
}

/** MCP over HTTP. mcp.ts implements the protocol; the token and all unrelated headers stop here. */
export const answerMcp: RouteHandler<'mcp'> = async ({ mcp }, { incoming, outgoing, caller }) => {
  const key = idempotencyKey(incoming.headers['idempotency-key'])
  const body = parseJson(await readText(incoming, outgoing, COMMAND_BODY_LIMITS.json))
  const response = await mcp({
    principal: caller.principal,
    request: new Request('http://localhost/mcp', {
      method: 'POST',
      headers: protocolHeaders(incoming.headers),
    }),
    body,
    onTaken: (effect) => void outgoing.once('finish', effect),
    ...(key === undefined ? {} : { idempotencyKey: key }),
  })
  const text = await response.text()
  if (text === '') outgoing.writeHead(response.status, SECURITY_HEADERS).end()
  else send(outgoing, response.status, response.headers.get('content-type') ?? 'application/json', text)
  return SENT
}

/** The protocol's own headers. The client always gets JSON, whatever it accepts: most responses have no other form. */
function protocolHeaders(headers: Readonly<Record<string, string | string[] | undefined>>): Headers {
  const passed = new Headers({ accept: 'application/json, text/event-stream' })
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value !== 'string') continue
    if (name === 'content-type' || name.startsWith('mcp-')) passed.set(name, value)
  }
  return passed
}
