import { AppError } from '../../../model/errors.ts'
import { sendJson } from '../answer.ts'
import { readText } from '../body.ts'
import { type RouteHandler, SENT } from '../call.ts'

/** GitHub sends up to 25 MB, and of that what we work on is far smaller. */
const MOST_BYTES = 8 * 1024 * 1024

/** The body is taken as it came: whoever does not know the secret gets nothing parsed. */
export const takeGithubWebhook: RouteHandler<'githubWebhook'> = async (
  { switchboard },
  { incoming, outgoing },
) => {
  const { github } = switchboard
  if (github === undefined || switchboard.team().config.github === undefined) {
    throw new AppError('NOT_FOUND', 'This service has no team for GitHub', {
      hint: 'Add "github:" to orc.yaml, and start it again.',
    })
  }
  const body = await readText(incoming, outgoing, { bytes: MOST_BYTES })
  const received = await github.receive({
    body,
    delivery: header(incoming.headers['x-github-delivery']),
    event: header(incoming.headers['x-github-event']),
    signature: header(incoming.headers['x-hub-signature-256']),
  })
  sendJson(outgoing, 202, JSON.stringify(received))
  return SENT
}

function header(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined
}
