import { type ApiCall, type ApiContext, type RouteHandler, SENT } from '../api/handle-request.ts'
import { sendJson } from '../api/http-response.ts'
import { mediaTypeOf, readText } from '../api/request-input.ts'
import { streamChanges } from '../api/stream-feed.ts'
import { AppError } from '../base/errors.ts'
import { formatId } from '../base/ids.ts'
import { personBehind } from '../commands/team.ts'
import { MAX_COMMAND_BYTES } from '../protocol/codec.ts'
import type { Reader } from '../store/store.ts'
import { describeAction, type RepositoryAction } from './core/action.ts'
import type { GithubTeam } from './github.ts'
import { isConfidentialRole } from './roles.ts'
import {
  type ActionRow,
  actionsOfDelivery,
  closeConduct,
  conductVersion,
  type GithubWorkOutline,
  readActions,
  readConduct,
  readDeliveries,
  readDelivery,
  readQueues,
  readSuspended,
  workOfDeliveries,
} from './store.ts'

/** GitHub sends up to 25 MB, but the events that the team handles are far smaller. */
const MAX_BYTES = 8 * 1024 * 1024

/** Reads the raw body: nothing is parsed before its signature is verified. */
export const takeGithubWebhook: RouteHandler<'githubWebhook'> = async (context, { incoming, outgoing }) => {
  const github = teamOf(context)
  const body = await readText(incoming, outgoing, { bytes: MAX_BYTES }).catch((error: unknown) => {
    if (!(error instanceof AppError) || error.code !== 'TOO_LARGE') throw error
    throw new AppError('TOO_LARGE', `The webhook is larger than ${MAX_BYTES / 2 ** 20} MiB`, {
      hint: 'Subscribe the webhook only to the events that the team handles.',
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
  teamOf(context)
  const trail = await trailOf(context.engine.store, params.delivery!)
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
    hint: 'Create a token with: orc token create AGENT',
  })
}

function header(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined
}

const iso = (at: number) => new Date(at).toISOString()

/** Recent webhooks and actions for the operator, without anything about conduct (S3.15). */
export const showGithub: RouteHandler<'github'> = async ({ engine }, { query }) => {
  const { store, github } = engine
  const settings = engine.team().config.github
  const deliveries = await readDeliveries(store, query.limit)
  const work = await workOfDeliveries(
    store,
    deliveries.map(({ id }) => id),
  )
  const byDelivery = Map.groupBy(work, ({ delivery }) => delivery)
  return {
    connected: settings !== undefined && github !== undefined,
    dry_run: settings?.dryRun ?? false,
    repositories: [...(settings?.repositories ?? [])],
    events: deliveries.map(({ id, event, state, note, received_at }) => {
      const parts = byDelivery.get(id) ?? []
      const about = parts[0]
      return {
        ...{ id, event, state, at: iso(received_at) },
        note: note ?? undefined,
        repository: about?.repository,
        number: about?.number ?? undefined,
        work: parts.map(shownWork),
      }
    }),
    actions: (await readActions(store, query.limit)).map(shownAction),
    suspended: (await readSuspended(store)).map(({ halted_at, ...one }) => ({ ...one, at: iso(halted_at) })),
  }
}

export const streamGithub: RouteHandler<'githubChanges'> = async (context, call) => {
  await streamChanges(context, call, async () => JSON.stringify(await readQueues(context.engine.store)))
  return SENT
}

/** Answers NOT_FOUND to everyone else: even the existence of flags is confidential (S3.15). */
function moderator({ engine }: ApiContext, { caller }: Pick<ApiCall, 'caller'>): string {
  const person = personBehind(engine.team(), caller.principal)
  if (person?.role === 'moderator') return person.name
  throw new AppError('NOT_FOUND', 'There is nothing to moderate', {
    hint: 'Only people with the role moderator in orc.yaml can moderate.',
  })
}

export const listModeration: RouteHandler<'moderation'> = async (context, call) => {
  moderator(context, call)
  const rows = await readConduct(context.engine.store, call.query.state, call.query.limit)
  return {
    flags: rows.map((row) => ({
      id: row.id,
      repository: row.repository,
      number: row.number ?? undefined,
      at: iso(row.created_at),
      flag: JSON.parse(row.flag) as Record<string, unknown>,
      closed_at: row.closed_at === null ? undefined : iso(row.closed_at),
      closed_by: row.closed_by ?? undefined,
      decision: row.decision ?? undefined,
      comment: row.comment ?? undefined,
    })),
  }
}

export const streamModeration: RouteHandler<'moderationChanges'> = async (context, call) => {
  moderator(context, call)
  await streamChanges(context, call, async () => {
    // A reload may have removed the role.
    moderator(context, call)
    return await conductVersion(context.engine.store)
  })
  return SENT
}

export const closeModeration: RouteHandler<'closeModeration'> = async (context, call) => {
  const name = moderator(context, call)
  const { decision, comment = null } = call.body
  const closed = await context.engine.store.write((tx) =>
    closeConduct(tx, call.params.id!, { by: name, decision, comment }),
  )
  if (!closed) throw new AppError('NOT_FOUND', 'There is no open flag with this id')
  return { closed }
}

/** The work and the actions that an event led to so far. */
async function trailOf(reader: Reader, id: string) {
  const delivery = await readDelivery(reader, id)
  if (delivery === undefined) return undefined
  const work = await workOfDeliveries(reader, [id])
  const actions = await actionsOfDelivery(reader, id)
  const isOpen =
    delivery.state === 'waiting' ||
    work.some(({ state }) => state === 'waiting' || state === 'delegated') ||
    actions.some(({ state }) => state === 'ready' || state === 'acting')
  return {
    delivery: id,
    event: delivery.event,
    state: delivery.state,
    note: delivery.note ?? undefined,
    work: work.map(shownWork),
    actions: actions.map((row) => {
      const { agent, text: what, state, note, request_id, url } = shownAction(row)
      return { agent, what, state, note, request_id, url }
    }),
    settled: !isOpen,
  }
}

function shownWork({ role, agent, state, task }: GithubWorkOutline) {
  return { role, agent, state, task_id: task === null ? undefined : formatId('task', task) }
}

function shownAction(row: ActionRow) {
  const action = JSON.parse(row.action) as RepositoryAction
  const { kind, ...fields } = action
  // Only moderators read the words of a confidential role.
  const isConfidential = isConfidentialRole(row.work.slice(row.work.lastIndexOf('/') + 1))
  return {
    ...{ key: row.key, agent: row.agent, repository: row.repository, kind, fields, state: row.state },
    ...{ text: describeAction(action), at: iso(row.created_at) },
    number: row.number ?? undefined,
    confidence: row.confidence ?? undefined,
    rationale: isConfidential || row.rationale === '' ? undefined : row.rationale,
    request_id: row.request === null ? undefined : formatId('req', row.request),
    url: row.url || undefined,
    note: row.note ?? undefined,
  }
}
