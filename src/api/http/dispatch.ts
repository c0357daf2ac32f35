import type { IncomingMessage, ServerResponse } from 'node:http'
import type { z } from 'zod'
import { AppError, asAppError } from '../../base/errors.ts'
import { principalName } from '../../commands/handle.ts'
import { changesNothing, noLongerAmongPeople } from '../../commands/identity.ts'
import { personBehind } from '../../commands/team.ts'
import { ROUTES, type Route, type RouteName } from '../contract.ts'
import { refuse, sendJson } from './answer.ts'
import { mediaTypeOf, readText } from './body.ts'
import { type Call, type Desk, type RouteHandler, SENT } from './call.ts'
import { type Caller, NOBODY } from './gate.ts'
import { parseJson } from './json.ts'

const BODY_BYTES = 64 * 1024

/** Takes one request from the gate to its answer: permission, query, body, handler. */
export async function dispatch<Name extends RouteName>(
  desk: Desk,
  name: Name,
  handler: RouteHandler<Name>,
  request: {
    incoming: IncomingMessage
    outgoing: ServerResponse
    caller: Caller
    params: Record<string, string>
  },
): Promise<void> {
  const { incoming, outgoing, caller, params } = request
  const route: Route = ROUTES[name]
  try {
    const isOperator = caller.principal.kind !== 'agent'
    const refused = refuseCaller(desk, caller, name)
    if (refused !== undefined) throw await noted(desk, caller, route, refused)
    const query = readQuery(route, incoming.url!) as Call<Name>['query']
    const body =
      route.body === undefined || route.limit === 'own'
        ? undefined
        : parseInput(route.body, await readJson(incoming, outgoing, route.limit ?? BODY_BYTES), 'body')
    const call: Call<Name> = {
      incoming,
      outgoing,
      caller,
      me: callerName(desk, caller, name),
      isOperator,
      params,
      query,
      body: body as Call<Name>['body'],
    }
    const answer = await handler(desk, call)
    if (answer !== SENT) sendJson(outgoing, 200, JSON.stringify(answer))
  } catch (thrown) {
    const error = asAppError(thrown)
    if (error.code === 'INTERNAL' || error.code.startsWith('STORE_')) {
      desk.engine.log.error({ err: thrown, route: name }, 'a request failed')
    }
    refuse(incoming, outgoing, error)
  }
}

function callerName({ engine }: Desk, { principal }: Caller, route: RouteName): string {
  if (principal.kind !== 'agent') return personBehind(engine.team(), principal)!.name
  const name = engine.team().resolve(principal.agent)
  if (name !== undefined) return name
  // A command is refused at the door, which writes it down.
  if (principal === NOBODY.principal || route === 'command') return principal.agent
  throw new AppError('FORBIDDEN', `${principal.agent} is no longer in the team`, {
    hint: 'Its token is still valid, but orc.yaml no longer names it.',
  })
}

/** What a person with another role than operator may not do: change something. Commands are judged at the door. */
function refuseCaller({ engine }: Desk, { principal }: Caller, name: RouteName): AppError | undefined {
  const route: Route = ROUTES[name]
  if (principal.kind === 'agent') {
    return route.who === 'operator' || route.who === 'person' ? peopleOnly() : undefined
  }
  const person = personBehind(engine.team(), principal)
  if (person === undefined) return noLongerAmongPeople(principal)
  const changes = (route.who === 'operator' && route.method !== 'get') || TAKES.has(name)
  return changes && person.role !== 'operator' ? changesNothing(person) : undefined
}

/** Looks like a look, and isn't one: what is taken is marked. */
const TAKES: ReadonlySet<RouteName> = new Set(['nextDeliveries'])

function peopleOnly(): AppError {
  return new AppError('FORBIDDEN', 'Only the operator may do this', {
    // Said to an agent, which might do as it is told: not a word on how to become the operator.
    hint: 'A person decides this. Go on with other work, or tell them what you need.',
  })
}

/** Written down, as far as it is no flood. */
async function noted(
  { engine }: Desk,
  { principal }: Caller,
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
  const said: Record<string, string> = Object.create(null)
  for (const [key, value] of new URLSearchParams(start < 0 ? '' : url.slice(start + 1))) {
    if (route.query === undefined || !Object.hasOwn(route.query.shape, key))
      throw unknownParameter(route, key)
    if (Object.hasOwn(said, key)) throw invalid(`The parameter "${key}" came twice`)
    // `?agent=` says nothing, so that it is the same as nothing.
    if (value !== '') said[key] = value
  }
  return route.query === undefined ? NO_QUERY : parseInput(route.query, { ...said }, 'query')
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
      ? 'A token never goes into a URL, where logs would keep it: send it as `Authorization: Bearer TOKEN`.'
      : `Known here: ${known.join(', ') || 'none'}.`,
  })
}

function invalid(message: string): AppError {
  return new AppError('INVALID_REQUEST', message.slice(0, 1000), {
    hint: 'GET /openapi.json describes every route.',
  })
}
