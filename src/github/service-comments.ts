import { ORCHESTRATOR } from '../base/agent.ts'
import type { Tx } from '../store/store.ts'
import { actionKey, describeAction, type RepositoryAction } from './core/action.ts'
import { withoutMentions } from './core/comments.ts'
import type { TaskError } from './core/report.ts'
import { approverLogins, type GithubParts } from './parts.ts'
import { type ActionRow, type GithubWork, insertAction } from './store.ts'

/** A thread, and the reason for writing there: the same text for the same source is posted once, even after a crash. */
interface CommentPlace {
  readonly source: string
  readonly repository: string
  readonly number: number
}

const ERROR_LABEL = 'agent-error'

/** Posts a comment of the service itself. Mentions only `tagged` logins, whatever agents wrote into the text. */
export async function commentAsService(
  tx: Tx,
  place: CommentPlace,
  text: string,
  tagged: readonly string[] = [],
) {
  const body = [withoutMentions(text, tagged), ...tagged.map((login) => `@${login}`)].join(' ')
  await insertServiceAction(tx, place, { kind: 'comment', number: place.number, body })
}

/** S3.12. */
async function labelError(tx: Tx, place: CommentPlace) {
  await insertServiceAction(tx, place, { kind: 'label', number: place.number, label: ERROR_LABEL })
}

async function insertServiceAction(
  tx: Tx,
  { source, repository, number }: CommentPlace,
  action: RepositoryAction,
) {
  await insertAction(tx, {
    key: actionKey(source, action),
    work: source,
    agent: ORCHESTRATOR,
    repository,
    number,
    action: JSON.stringify(action),
    confidence: null,
    rationale: '',
    state: 'ready',
    request: null,
    note: null,
  })
}

interface ExpiredRequest {
  /** `req_7`. */
  readonly request: string
  readonly agent: string
  readonly repository: string
  readonly number: number | null
  readonly what: string
  readonly hours: number
}

export type Escalation = ReturnType<typeof createEscalation>

/** Tells people about failures: in the inbox, and on GitHub by mentioning the maintainers (S3.12, C7, C9). */
export function createEscalation({
  settings,
  redact,
  team,
  people,
}: Pick<GithubParts, 'settings' | 'redact' | 'team' | 'people'>) {
  return {
    /** After the last attempt. The agent's own words go to the inbox only: they may quote private text. */
    async workFailed(tx: Tx, { id, agent, repository, number }: GithubWork, error: TaskError): Promise<void> {
      const where = number === null ? repository : `${repository}#${number}`
      const tries = error.retry_count === 0 ? '' : ` after ${error.retry_count} retries`
      await people.notify(tx, {
        agent,
        question: `${agent} failed at ${where}${tries}: ${error.error_type}`,
        reason: redact(`${error.error_message} ${error.suggested_action}`.slice(0, 2000)),
      })
      if (number === null) return
      const place = { source: `${id}/failed`, repository, number }
      await labelError(tx, place)
      const { maintainers } = settings()
      if (maintainers.length === 0) return
      const text = `**${agent}** could not do its work here (\`${error.error_type}\`${tries}). ${error.suggested_action}`
      await commentAsService(tx, place, text, maintainers)
    },
    /** Not called for the service's own comments, or a failing comment would cause another one. */
    async actionFailed(tx: Tx, row: ActionRow, action: RepositoryAction, why: string): Promise<void> {
      if (row.number === null) return
      const place = { source: `${row.work}/error`, repository: row.repository, number: row.number }
      await labelError(tx, place)
      const text = `**${row.agent}** could not ${describeAction(action)}: ${redact(why)}`
      await commentAsService(tx, place, text, settings().maintainers)
    },
    /** Mentions the approvers, or the maintainers if no approver has a login. The inbox reports it by itself. */
    async requestExpired(
      tx: Tx,
      { request, agent, repository, number, what, hours }: ExpiredRequest,
    ): Promise<void> {
      if (number === null) return
      const text = `Nobody decided on ${request} within ${hours} hours, so **${agent}** did not ${what}.`
      const place = { source: `${request}/expired`, repository, number }
      const approvers = approverLogins(team(), settings())
      await commentAsService(tx, place, text, approvers.length === 0 ? settings().maintainers : approvers)
    },
  }
}
