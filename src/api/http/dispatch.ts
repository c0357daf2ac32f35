import type { IncomingMessage, ServerResponse } from 'node:http'
import type { z } from 'zod'
import { AppError, asAppError } from '../../base/errors.ts'
import { principalName } from '../../commands/handle.ts'
import { changesNothing, noLongerAmongPeople, peopleOnly } from '../../commands/identity.ts'
import { personBehind } from '../../commands/team.ts'
import { ROUTES, type Route, type RouteName } from '../contract.ts'
import { type ApiCaller, NOBODY } from './authenticate.ts'
import { type ApiCall, type ApiContext, type RouteHandler, SENT } from './call.ts'
import { mediaTypeOf, parseJson, readText, refuse, sendJson } from './exchange.ts'

const BODY_BYTES = 64 * 1024

/** Handles one authenticated request: permission, query, body, handler, response. */
export async function dispatch<Name extends RouteName>(
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
  if (principal === NOBODY.principal || route === 'command') return principal.agent
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
