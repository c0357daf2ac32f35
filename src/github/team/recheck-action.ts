import { ORCHESTRATOR } from '../../base/agent.ts'
import type { RepositoryAction } from '../core/action.ts'
import { type GitHubFailure, type GitHubResult, isRecoverable } from '../core/failure.ts'
import { isPaused } from '../core/pause.ts'
import type { ActionRow } from '../store/actions.ts'
import { findWork } from '../store/work.ts'
import type { GithubParts } from './parts.ts'
import { isReply } from './run-slash-commands.ts'

const PAUSE_CACHE_MS = 10_000

/** `go`: perform the action. `end`: it no longer applies or is already done. `later`: GitHub could not be asked. */
type ActionCheck =
  | { verdict: 'go'; author: string | undefined }
  | { verdict: 'end'; state: 'stale' | 'done'; why: string }
  | { verdict: 'later'; failure: GitHubFailure }

/** Checks an action against the current thread: days may pass between a proposal and its approval. */
export function createRecheck({ store, github, clock }: Pick<GithubParts, 'store' | 'github' | 'clock'>) {
  const pauses = new Map<string, { at: number; is: boolean }>()

  /** Cached for a short time: one more call for each action would use up GitHub's rate limit. */
  async function isRepositoryPaused({ repository }: ActionRow): Promise<GitHubResult<boolean>> {
    const known = pauses.get(repository)
    if (known !== undefined && clock.now() - known.at < PAUSE_CACHE_MS) return { ok: true, value: known.is }
    const topics = await github.topicsOf(repository)
    // Without access to the repository the action itself fails later.
    if (!topics.ok) return isRecoverable(topics.error) ? topics : { ok: true, value: false }
    const is = isPaused([], topics.value)
    pauses.set(repository, { at: clock.now(), is })
    return { ok: true, value: is }
  }

  /** Whether the thread was already closed when the agent got the task, such as for a slash command in a closed thread. */
  async function wasClosed({ work, number }: ActionRow): Promise<boolean> {
    const asked = await findWork(store, work)
    if (asked === undefined || asked.number !== number) return false
    const { context } = JSON.parse(asked.delegation) as { context?: { content?: { state?: string } } }
    return context?.content?.state === 'closed'
  }

  return {
    async recheck(row: ActionRow, action: RepositoryAction): Promise<ActionCheck> {
      const isAnswer = isReply(row.work)
      const paused = isAnswer ? { ok: true as const, value: false } : await isRepositoryPaused(row)
      if (!paused.ok) return { verdict: 'later', failure: paused.error }
      if (paused.value) return end('stale', 'people paused the team in the repository')
      if (row.number === null) return { verdict: 'go', author: undefined }
      const now = await github.look(row.repository, row.number)
      if (!now.ok) {
        if (now.error.kind !== 'gone') return { verdict: 'later', failure: now.error }
        return end('stale', `#${row.number} no longer exists`)
      }
      const { labels, state, author, kind } = now.value
      if (!isAnswer && isPaused(labels, [])) return end('stale', 'people paused the team there')
      if (action.kind === 'label') {
        const label = action.label.toLowerCase()
        if (labels.some((one) => one.toLowerCase() === label))
          return end('done', 'the label is already there')
      }
      if (action.kind === 'review' && kind !== 'pull_request')
        return end('stale', `#${row.number} is not a pull request`)
      if (state !== 'closed') return { verdict: 'go', author }
      if (action.kind === 'close') {
        // In state acting, an earlier call most likely closed it and its response was lost.
        return row.state === 'acting'
          ? end('done', 'it was already done')
          : end('stale', 'it is already closed')
      }
      const isText = action.kind === 'comment' || action.kind === 'review'
      if (isText && row.agent !== ORCHESTRATOR && !(await wasClosed(row)))
        return end('stale', 'it was closed in the meantime')
      return { verdict: 'go', author }
    },

    /** GitHub also answers 404 to a missing permission. If the thread exists, the permission is the reason. */
    async explainMissing(row: ActionRow, failure: GitHubFailure): Promise<GitHubFailure> {
      if (failure.kind !== 'gone' || row.number === null) return failure
      const now = await github.look(row.repository, row.number)
      if (!now.ok) return now.error
      const message = `${failure.message} (#${row.number} exists: the token or the App may lack a permission)`
      return { ...failure, kind: 'forbidden', message }
    },
  }
}

function end(state: 'stale' | 'done', why: string): ActionCheck {
  return { verdict: 'end', state, why }
}
