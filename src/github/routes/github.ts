import { sendJson } from '../../api/http/answer.ts'
import { type ApiCall, type ApiContext, type RouteHandler, SENT } from '../../api/http/call.ts'
import { streamChanges } from '../../api/http/follow.ts'
import { mediaTypeOf, readText } from '../../api/http/input.ts'
import { AppError } from '../../base/errors.ts'
import { MAX_COMMAND_BYTES } from '../../protocol/codec.ts'
import type { GithubTeam } from '../github.ts'
import { deliveriesVersion } from '../store/deliveries.ts'
import { readGithubLog } from '../team/event-log.ts'

/** GitHub sends up to 25 MB, but the events that the team handles are far smaller. */
const MAX_BYTES = 8 * 1024 * 1024

/** Reads the raw body: nothing is parsed before its signature is verified. */
export const takeGithubWebhook: RouteHandler<'githubWebhook'> = async (context, { incoming, outgoing }) => {
  const github = teamOf(context)
  const body = await readText(incoming, outgoing, { bytes: MAX_BYTES }).catch((error: unknown) => {
    if (!(error instanceof AppError) || error.code !== 'TOO_LARGE') throw error
    throw new AppError('TOO_LARGE', `The webhook is larger than ${MAX_BYTES / 2 ** 20} MiB`, {
      hint: 'Let GitHub send only the events that the team handles.',
    })
  })
  const received = await github.receive({
    body,
    delivery: header(incoming.headers['x-github-delivery']),
    event: header(incoming.headers['x-github-event']),
    signature: header(incoming.headers['x-hub-signature-256']),
    mediaType: mediaTypeOf(incoming.headers['content-type']),
  })
  sendJson(outgoing, 202, JSON.stringify(received))
  return SENT
}

function teamOf({ engine }: ApiContext): GithubTeam {
  const { github } = engine
  if (github !== undefined && engine.team().config.github !== undefined) return github
  throw new AppError('NOT_FOUND', 'This service has no GitHub team', {
    hint: 'Add "github:" to orc.yaml and restart the service.',
  })
}

export const showGithubSetup: RouteHandler<'githubSetup'> = (context) => teamOf(context).setup()

export const replayGithubEvent: RouteHandler<'replayEvent'> = async (context, { body, callerName }) => ({
  delivery: await teamOf(context).replay(body.event, JSON.stringify(body.payload), callerName),
})

export const showGithubEvent: RouteHandler<'githubEvent'> = async (context, { params }) => {
  const trail = await teamOf(context).trail(params.delivery!)
  if (trail !== undefined) return trail
  throw new AppError('NOT_FOUND', `Unknown delivery ${params.delivery!.slice(0, 64)}`)
}

/** Answers with bare messages of the team protocol. */
export const nextTeamMessages: RouteHandler<'nextTeamMessages'> = async (context, call) => {
  const { members } = teamOf(context)
  const agent = memberOf(call)
  const open = context.openCalls.open('poll', call.caller, call.outgoing)
  try {
    const messages = await members.next(agent, { waitMs: call.query.wait * 1000, signal: open.signal })
    return messages.map((text) => JSON.parse(text) as Record<string, unknown>)
  } finally {
    open.done()
  }
}

export const sayTeamMessage: RouteHandler<'sayTeamMessage'> = async (context, call) => {
  const { members } = teamOf(context)
  const agent = memberOf(call)
  const text = await readText(call.incoming, call.outgoing, { bytes: MAX_COMMAND_BYTES })
  return await members.say(agent, text)
}

function memberOf({ isPerson, callerName }: Pick<ApiCall, 'isPerson' | 'callerName'>): string {
  if (!isPerson) return callerName
  throw new AppError('FORBIDDEN', 'Only members of the team may call this, each with its own token', {
    hint: 'Create a token with: orc token AGENT',
  })
}

function header(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined
}

const iso = (at: number) => new Date(at).toISOString()

export const showGithub: RouteHandler<'github'> = async ({ engine }, { query }) => {
  const settings = engine.team().config.github
  const { events, actions, halted } = await readGithubLog(engine.store, query.limit)
  return {
    connected: settings !== undefined && engine.github !== undefined,
    dry_run: settings?.dryRun ?? false,
    repositories: [...(settings?.repositories ?? [])],
    events: events.map(({ at, ...event }) => ({ ...event, at: iso(at) })),
    actions: actions.map(({ at, ...action }) => ({ ...action, at: iso(at) })),
    halted: halted.map(({ at, ...one }) => ({ ...one, at: iso(at) })),
  }
}

export const streamGithub: RouteHandler<'githubChanges'> = async (context, call) => {
  await streamChanges(context, call, () => deliveriesVersion(context.engine.store))
  return SENT
}
