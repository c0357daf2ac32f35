import { tellPeople } from '../../people/notices.ts'
import type { Tx } from '../../store/store.ts'
import { type Action, describeAction } from '../core/action.ts'
import type { TaskError } from '../core/task-error.ts'
import type { GithubAction } from '../store/actions.ts'
import type { GithubWork } from '../store/work.ts'
import { labelError, say } from './own-doing.ts'
import { approverLogins, type GithubParts } from './settings.ts'

export interface Expired {
  /** `req_7`. */
  readonly request: string
  readonly agent: string
  readonly repository: string
  readonly number: number | null
  readonly what: string
  readonly hours: number
}

export type Escalating = ReturnType<typeof createEscalating>

/** What agents cannot go on with comes to people: in the inbox, and on GitHub to the maintainers (S3.12, C7, C9). */
export function createEscalating({
  settings,
  redact,
  team,
}: Pick<GithubParts, 'settings' | 'redact' | 'team'>) {
  return {
    /** A task, after the last attempt. What the agent says of it is for the inbox: its words may quote what is not public. */
    async failed(tx: Tx, { id, agent, repository, number }: GithubWork, error: TaskError): Promise<void> {
      const where = number === null ? repository : `${repository}#${number}`
      const tries = error.retry_count === 0 ? '' : ` after ${error.retry_count} retries`
      await tellPeople(tx, {
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
      await say(tx, place, text, maintainers)
    },
    /** An action that GitHub does not take. What the service says about a failure never leads to more of the same. */
    async notDone(tx: Tx, row: GithubAction, action: Action, why: string): Promise<void> {
      if (row.number === null) return
      const place = { source: `${row.work}/error`, repository: row.repository, number: row.number }
      await labelError(tx, place)
      const text = `**${row.agent}** could not ${describeAction(action)}: ${redact(why)}`
      await say(tx, place, text, settings().maintainers)
    },
    /** Nobody answered in time: the inbox says so by itself, and here those who should have answered hear of it, or the maintainers if none has a login. */
    async expired(tx: Tx, { request, agent, repository, number, what, hours }: Expired): Promise<void> {
      if (number === null) return
      const text = `Nobody decided on ${request} within ${hours} hours, so **${agent}** did not ${what}.`
      const place = { source: `${request}/expired`, repository, number }
      const approvers = approverLogins(team(), settings())
      await say(tx, place, text, approvers.length === 0 ? settings().maintainers : approvers)
    },
  }
}
