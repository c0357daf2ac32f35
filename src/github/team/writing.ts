import { ORCHESTRATOR } from '../../base/agent.ts'
import { formatId } from '../../base/ids.ts'
import type { Action } from '../core/action.ts'
import { signed, withoutMentions } from '../core/notice.ts'
import type { GithubAction } from '../store/actions.ts'
import { approverLogins, type GithubParts } from './settings.ts'

/** What is decided, in the words that go out: without secrets, signed, and with its mark (C25). */
export function createWriting({ redact, team, settings }: Pick<GithubParts, 'redact' | 'team' | 'settings'>) {
  /** By it the service knows its own commit again (C25), and everybody that an agent wrote it. */
  function commitMessage(text: string, { key, agent }: GithubAction): string {
    return `${withoutMentions(redact(text), [])}\n\nWritten by the AI agent ${agent}.\nOrchub-Action: ${key}`
  }

  return {
    /** What the commit says that comes with a pull request. */
    commitOf: (row: GithubAction, action: Action): string | undefined =>
      action.kind === 'pull_request' ? commitMessage(action.title, row) : undefined,

    /** `author`: of the thread, who may be addressed. */
    written(row: GithubAction, action: Action, author: string | undefined): Action {
      if (action.kind === 'branch')
        return { ...action, message: commitMessage(action.message ?? 'Written by an agent', row) }
      if (!('body' in action)) return action
      // Of its own words, the service has said already whom they call.
      const called =
        row.agent === ORCHESTRATOR ? [...approverLogins(team(), settings()), ...settings().maintainers] : []
      const body = signed(redact(action.body), {
        key: row.key,
        agent: row.agent,
        mayMention: [...(author === undefined ? [] : [author]), ...called],
        ...(row.request === null ? {} : { approvedAs: formatId('req', row.request) }),
      })
      return { ...action, body }
    },
  }
}

/** Whoever wrote it finds out why it is closed, and by whom, before it is. */
export function closingComment({
  number,
  duplicate_of: other,
  reason = '',
}: Extract<Action, { kind: 'close' }>): Extract<Action, { kind: 'comment' }> {
  const as = other === undefined ? 'as not planned' : `as a duplicate of #${other}`
  const why = reason.trim() === '' ? '' : `\n\n${reason.trim()}`
  return { kind: 'comment', number, body: `This is being closed ${as}.${why}` }
}
