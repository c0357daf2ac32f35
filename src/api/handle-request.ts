import type { IncomingMessage, ServerResponse } from 'node:http'
import type { z } from 'zod'
import type { AuditVerification } from '../audit/verify-store.ts'
import { type Principal, RESERVED_NAMES } from '../base/agent.ts'
import { AppError, asAppError } from '../base/errors.ts'
import { principalName } from '../commands/handle.ts'
import {
  changesNothing,
  namedAgent,
  noLongerAmongPeople,
  noTokensForBrowsers,
  peopleOnly,
} from '../commands/identity.ts'
import { personBehind, type Team } from '../commands/team.ts'
import type { Engine } from '../engine.ts'
import { decideAction, readableLogs } from '../rules/decide.ts'
import type { Action } from '../rules/rule.ts'
import type { Feed } from './audit-feed.ts'
import { ANONYMOUS, type ApiCaller } from './authenticate.ts'
import type { Logins } from './browser-sessions.ts'
import {
  type AnswerOf,
  type ParsedBodyOf,
  type ParsedQueryOf,
  ROUTES,
  type Route,
  type RouteName,
} from './contract.ts'
import { refuse, sendJson } from './http-response.ts'
import type { Metrics } from './metrics.ts'
import type { OpenCalls } from './open-calls.ts'
import { mediaTypeOf, parseJson, readText } from './request-input.ts'

/** Facts about the service that its embedder passes in. */
export interface ServiceInfo {
  version: string
  startedAt: number
  storePlace: string
  configStatus: () => { file?: string; loadedAt: number; problem?: string }
  verifyAudit: () => Promise<AuditVerification>
  /** Called when a caller asks the service to stop. */
  onStop?: (agents: 'end' | 'leave') => void
}

/** The dependencies of every route handler. */
export interface ApiContext extends ServiceInfo {
  readonly engine: Engine
  readonly metrics: Metrics
  readonly feed: Feed
  readonly openCalls: OpenCalls
  readonly mcp: McpEndpoint
  readonly logins: Logins
  /** The name of the browser session's cookie. */
  cookie(): string
}

/** An authenticated request with validated input. */
export interface ApiCall<Name extends RouteName = RouteName> {
  readonly incoming: IncomingMessage
  readonly outgoing: ServerResponse
  readonly caller: ApiCaller
  /** The agent's registered name, or the person's name. */
  readonly callerName: string
  /** True for people, whatever their role: they read everything the operator reads. */
  readonly isPerson: boolean
  readonly params: Readonly<Record<string, string>>
  readonly query: ParsedQueryOf<Name>
  readonly body: ParsedBodyOf<Name>
}

/** Returned by handlers that write the response themselves: streams, and formats other than JSON. */
export const SENT: AlreadySent = { sent: true }

export interface AlreadySent {
  readonly sent: true
}

export type RouteHandler<Name extends RouteName> = (
  context: ApiContext,
  call: ApiCall<Name>,
) => Promise<AnswerOf<Name> | AlreadySent> | AnswerOf<Name> | AlreadySent

/** Answers MCP clients with web-standard requests and responses. Stateless: every exchange stands alone. */
export type McpEndpoint = (exchange: McpExchange) => Promise<Response>

/** An authenticated POST from an MCP client. */
export interface McpExchange {
  principal: Principal
  /** Carries the protocol's headers only; `body` holds the parsed body. */
  request: Request
  body: unknown
  /** Same key, same effect: the command runs once (C25). */
  idempotencyKey?: string
  /** Runs the effect after the client has received the whole response. */
  onTaken(effect: () => void): void
}

type CallerFacts = Pick<ApiCall, 'callerName' | 'isPerson'>

/** Like `namedAgent`, but also accepts the service and its people, who send messages and act in the audit. */
export function namedParty(team: Team, name: string): string {
  const lower = name.toLowerCase()
  return RESERVED_NAMES.has(lower) ? lower : namedAgent(team, name)
}

/** The agent whose data a call reads: the caller itself, unless it was granted more (C14). */
export function subjectOf(team: Team, call: CallerFacts, named: string | undefined): string {
  if (named === undefined) {
    if (!call.isPerson) return call.callerName
    throw new AppError('INVALID_REQUEST', 'The operator is not an agent; name the agent you mean', {
      hint: `Add ?agent=NAME. Agents: ${team.names.join(', ')}.`,
    })
  }
  const agent = namedAgent(team, named)
  if (agent !== call.callerName) requirePermission(team, call, 'read_other_mailbox', agent)
  return agent
}

export function requirePermission(
  team: Team,
  { callerName, isPerson }: CallerFacts,
  action: Action,
  target?: string,
): void {
  if (isPerson) return
  const { verdict, reason } = decideAction(team.rules, callerName, action, target)
  if (verdict === 'allow') return
  throw new AppError('FORBIDDEN', verdict === 'deny' ? reason : `A person must be asked first: ${reason}`, {
    hint:
      verdict === 'deny'
        ? `This needs the permission ${action} in orc.yaml.`
        : 'Send a command instead: a command can wait for a person, a GET request cannot.',
  })
}

/** The agents whose messages the caller may read, always including itself. */
export function readableParties(
  team: Team,
  { callerName, isPerson }: CallerFacts,
): readonly string[] | 'all' {
  if (isPerson) return 'all'
  const readable = readableLogs(team.rules, callerName)
  return readable === 'all' ? 'all' : [...new Set([callerName, ...readable])]
}

/** A hijacked page must not gain access that outlives the page. */
export function refuseBrowser({ caller }: Pick<ApiCall, 'caller'>) {
  if (caller.isBrowser) throw noTokensForBrowsers()
}

/** False after a reload removed the reader from the team. A revoked token ends its streams by itself. */
export function isInTeam(
  { engine }: ApiContext,
  { callerName, caller }: Pick<ApiCall, 'callerName' | 'caller'>,
): boolean {
  const team = engine.team()
  return caller.principal.kind === 'agent'
    ? team.resolve(callerName) !== undefined
    : personBehind(team, caller.principal) !== undefined
}

const BODY_BYTES = 64 * 1024

/** Handles one authenticated request: permission, query, body, handler, response. */
export async function handleRequest<Name extends RouteName>(
  context: ApiContext,
  name: Name,
  handler: RouteHandler<Name>,
  request: {
    incoming: IncomingMessage
    outgoing: ServerResponse
    caller: ApiCaller
    params: Record<string, string>
  },
): Promise<void> {
  const { incoming, outgoing, caller, params } = request
  const route: Route = ROUTES[name]
  try {
    const isPerson = caller.principal.kind !== 'agent'
    const refused = refuseCaller(context, caller, name)
    if (refused !== undefined) throw await auditRefusal(context, caller, route, refused)
    const query = readQuery(route, incoming.url!) as ApiCall<Name>['query']
    const body =
      route.body === undefined || route.limit === 'own'
        ? undefined
        : parseInput(route.body, await readJson(incoming, outgoing, route.limit ?? BODY_BYTES), 'body')
    const call: ApiCall<Name> = {
      incoming,
      outgoing,
      caller,
      callerName: nameOfCaller(context, caller, name),
      isPerson,
      params,
      query,
      body: body as ApiCall<Name>['body'],
    }
    const answer = await handler(context, call)
    if (answer !== SENT) sendJson(outgoing, 200, JSON.stringify(answer))
  } catch (thrown) {
    const error = asAppError(thrown)
    if (error.code === 'INTERNAL' || error.code.startsWith('STORE_')) {
      context.engine.log.error({ err: thrown, route: name }, 'a request failed')
    }
    refuse(incoming, outgoing, error)
  }
}

function nameOfCaller({ engine }: ApiContext, { principal }: ApiCaller, route: RouteName): string {
  if (principal.kind !== 'agent') return personBehind(engine.team(), principal)!.name
  const name = engine.team().resolve(principal.agent)
  if (name !== undefined) return name
  // `handle` refuses commands from unknown agents itself and audits the refusal.
  if (principal === ANONYMOUS.principal || route === 'command') return principal.agent
  throw new AppError('FORBIDDEN', `${principal.agent} is no longer in the team`, {
    hint: 'Its token is still valid, but orc.yaml no longer names it.',
  })
}

/** People who are not operators may change nothing. `handle` checks commands itself. */
function refuseCaller(
  { engine }: ApiContext,
  { principal }: ApiCaller,
  name: RouteName,
): AppError | undefined {
  const route: Route = ROUTES[name]
  if (principal.kind === 'agent') {
    return route.who === 'operator' || route.who === 'person' ? peopleOnly() : undefined
  }
  const person = personBehind(engine.team(), principal)
  if (person === undefined) return noLongerAmongPeople(principal)
  const changes = (route.who === 'operator' && route.method !== 'get') || CHANGING_GETS.has(name)
  return changes && person.role !== 'operator' ? changesNothing(person) : undefined
}

/** GET routes that change state: reading the next deliveries marks them as handed out. */
const CHANGING_GETS: ReadonlySet<RouteName> = new Set(['nextDeliveries'])

/** Audits the refusal, rate-limited so that a flood of refusals cannot fill the audit. */
async function auditRefusal(
  { engine }: ApiContext,
  { principal }: ApiCaller,
  route: Route,
  error: AppError,
): Promise<AppError> {
  const actor = principalName(principal)
  const note = engine.rateLimits.noteRefusal(engine.team(), actor, 'security', engine.clock.now())
  if (note.write) {
    const more = note.unwritten === 0 ? '' : ` (and ${note.unwritten} earlier ones were not recorded)`
    await engine.store.write((tx) =>
      tx.audit({
        type: 'security.forbidden',
        class: 'private',
        actor,
        text: `${route.method.toUpperCase()} ${route.path} refused: ${error.message}${more}`,
        data: { route: route.path },
      }),
    )
  }
  return error
}

const NO_QUERY: Record<string, never> = {}

function readQuery(route: Route, url: string): unknown {
  const start = url.indexOf('?')
  if (start < 0 && route.query === undefined) return NO_QUERY
  const given: Record<string, string> = Object.create(null)
  for (const [key, value] of new URLSearchParams(start < 0 ? '' : url.slice(start + 1))) {
    if (route.query === undefined || !Object.hasOwn(route.query.shape, key))
      throw unknownParameter(route, key)
    if (Object.hasOwn(given, key)) throw invalid(`The parameter "${key}" appears twice`)
    // `?agent=` counts as absent.
    if (value !== '') given[key] = value
  }
  return route.query === undefined ? NO_QUERY : parseInput(route.query, { ...given }, 'query')
}

async function readJson(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  bytes: number,
): Promise<unknown> {
  if (mediaTypeOf(incoming.headers['content-type']) !== 'application/json') {
    throw new AppError('INVALID_REQUEST', 'The body must be JSON', {
      hint: 'Send the header `Content-Type: application/json`.',
    })
  }
  return parseJson(await readText(incoming, outgoing, { bytes }))
}

function parseInput<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  where: string,
): z.output<Schema> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const problems = parsed.error.issues.map((issue) => `${issue.path.join('.') || where}: ${issue.message}`)
  throw invalid(problems.join('; '))
}

function unknownParameter(route: Route, key: string): AppError {
  const known = route.query === undefined ? [] : Object.keys(route.query.shape)
  const isToken = /token|authorization/i.test(key)
  return new AppError('INVALID_REQUEST', `Unknown parameter "${key.slice(0, 40)}"`, {
    hint: isToken
      ? 'Never put a token into a URL, where logs would keep it: send it as `Authorization: Bearer TOKEN`.'
      : `Known parameters: ${known.join(', ') || 'none'}.`,
  })
}

function invalid(message: string): AppError {
  return new AppError('INVALID_REQUEST', message.slice(0, 1000), {
    hint: 'GET /openapi.json describes every route.',
  })
}
