import { sendJson } from '../../api/http/answer.ts'
import { mediaTypeOf, readText } from '../../api/http/body.ts'
import { type Call, type Desk, type RouteHandler, SENT } from '../../api/http/call.ts'
import { AppError } from '../../base/errors.ts'
import { MAX_COMMAND_BYTES } from '../../protocol/codec.ts'
import type { GithubTeam } from '../github.ts'

/** GitHub sends up to 25 MB, and of that what we work on is far smaller. */
const MOST_BYTES = 8 * 1024 * 1024

/** The body is taken as it came: whoever does not know the secret gets nothing parsed. */
export const takeGithubWebhook: RouteHandler<'githubWebhook'> = async (desk, { incoming, outgoing }) => {
  const github = teamOf(desk)
  const body = await readText(incoming, outgoing, { bytes: MOST_BYTES }).catch((error: unknown) => {
    if (!(error instanceof AppError) || error.code !== 'TOO_LARGE') throw error
    throw new AppError('TOO_LARGE', `A webhook of more than ${MOST_BYTES / 2 ** 20} MiB is not taken`, {
      hint: 'Have GitHub send only the events that the team works on.',
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

function teamOf({ engine }: Desk): GithubTeam {
  const { github } = engine
  if (github !== undefined && engine.team().config.github !== undefined) return github
  throw new AppError('NOT_FOUND', 'This service has no team for GitHub', {
    hint: 'Add "github:" to orc.yaml, and start it again.',
  })
}

export const showGithubSetup: RouteHandler<'githubSetup'> = (desk) => teamOf(desk).setup()

export const replayGithubEvent: RouteHandler<'replayEvent'> = async (desk, { body, me }) => ({
  delivery: await teamOf(desk).replay(body.event, JSON.stringify(body.payload), me),
})

export const showGithubEvent: RouteHandler<'githubEvent'> = async (desk, { params }) => {
  const trail = await teamOf(desk).trail(params.delivery!)
  if (trail !== undefined) return trail
  throw new AppError('NOT_FOUND', `GitHub sent no ${params.delivery!.slice(0, 64)}`)
}

/** In the protocol's own JSON, and nothing around it. */
export const nextTeamMessages: RouteHandler<'nextTeamMessages'> = async (desk, call) => {
  const { members } = teamOf(desk)
  const agent = memberOf(call)
  const open = desk.openCalls.open('poll', call.caller, call.outgoing)
  try {
    const messages = await members.next(agent, { waitMs: call.query.wait * 1000, signal: open.signal })
    return messages.map((text) => JSON.parse(text) as Record<string, unknown>)
  } finally {
    open.done()
  }
}

export const sayTeamMessage: RouteHandler<'sayTeamMessage'> = async (desk, call) => {
  const { members } = teamOf(desk)
  const agent = memberOf(call)
  const text = await readText(call.incoming, call.outgoing, { bytes: MAX_COMMAND_BYTES })
  return await members.say(agent, text)
}

function memberOf({ isOperator, me }: Pick<Call, 'isOperator' | 'me'>): string {
  if (!isOperator) return me
  throw new AppError('FORBIDDEN', 'Members of the team speak here, each with its own token', {
    hint: 'orc token AGENT makes one.',
  })
}

function header(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined
}
