import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AuditVerdict } from '../../audit/verify-store.ts'
import { type Principal, RESERVED_NAMES } from '../../base/agent.ts'
import { AppError } from '../../base/errors.ts'
import { namedAgent, noTokensForBrowsers } from '../../commands/identity.ts'
import { personBehind, type Team } from '../../commands/team.ts'
import type { Engine } from '../../engine.ts'
import { decideAction, readableLogs } from '../../rules/decide.ts'
import type { Action } from '../../rules/rule.ts'
import type { AnswerOf, ParsedBodyOf, ParsedQueryOf, RouteName } from '../contract.ts'
import type { ApiCaller, Logins } from './authenticate.ts'
import type { Feed, OpenCalls } from './event-streams.ts'
import type { Metrics } from './metrics.ts'

/** Facts about the service that its embedder passes in. */
export interface ServiceInfo {
  version: string
  startedAt: number
  storePlace: string
  configStatus: () => { file?: string; loadedAt: number; problem?: string }
  verifyAudit: () => Promise<AuditVerdict>
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
  if (agent !== call.callerName) demand(team, call, 'read_other_mailbox', agent)
  return agent
}

export function demand(
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

/** The person behind a principal; undefined for agents and for people removed from orc.yaml. */
export function personOf(team: Team, principal: ApiCall['caller']['principal']) {
  return personBehind(team, principal)
}
