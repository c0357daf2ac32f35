import { ORCHESTRATOR } from '../../base/agent.ts'
import type { Action } from '../core/action.ts'
import { type Answer, type GitHubFailure, isRecoverable } from '../core/failure.ts'
import { isPaused } from '../core/pause.ts'
import type { GithubAction } from '../store/actions.ts'
import { findWork } from '../store/work.ts'
import { type GithubParts, isReply } from './settings.ts'

const PAUSE_KNOWN_MS = 10_000

/** How things stand just before something is done. */
export type Standing =
  | { verdict: 'go'; author: string | undefined }
  | { verdict: 'end'; state: 'stale' | 'done'; why: string }
  | { verdict: 'later'; failure: GitHubFailure }

/** Between a proposal and its approval lie up to three days, and more. */
export function createLooking({ store, github, clock }: Pick<GithubParts, 'store' | 'github' | 'clock'>) {
  const pauses = new Map<string, { at: number; is: boolean }>()

  /** Asked at most every so often: one call more for each action would be felt in GitHub's limits. */
  async function isAllPaused({ repository }: GithubAction): Promise<Answer<boolean>> {
    const known = pauses.get(repository)
    if (known !== undefined && clock.now() - known.at < PAUSE_KNOWN_MS) return { ok: true, value: known.is }
    const topics = await github.topicsOf(repository)
    // Whoever must not know of the repository gets no further anyway.
    if (!topics.ok) return isRecoverable(topics.failure) ? topics : { ok: true, value: false }
    const is = isPaused([], topics.value)
    pauses.set(repository, { at: clock.now(), is })
    return { ok: true, value: is }
  }

  /** When the agent was asked about it, as by a command in a closed thread: it is to be answered there. */
  async function wasClosed({ work, number }: GithubAction): Promise<boolean> {
    const asked = await findWork(store, work)
    if (asked === undefined || asked.number !== number) return false
    const { context } = JSON.parse(asked.delegation) as { context?: { content?: { state?: string } } }
    return context?.content?.state === 'closed'
  }

  return {
    async lookAgain(row: GithubAction, action: Action): Promise<Standing> {
      const isAnswer = isReply(row.work)
      const paused = isAnswer ? { ok: true as const, value: false } : await isAllPaused(row)
      if (!paused.ok) return { verdict: 'later', failure: paused.failure }
      if (paused.value) return end('stale', 'people paused the team in the repository')
      if (row.number === null) return { verdict: 'go', author: undefined }
      const now = await github.look(row.repository, row.number)
      if (!now.ok) {
        if (now.failure.kind !== 'gone') return { verdict: 'later', failure: now.failure }
        return end('stale', `#${row.number} is not there any more`)
      }
      const { labels, state, author, kind } = now.value
      if (!isAnswer && isPaused(labels, [])) return end('stale', 'people paused the team there')
      if (action.kind === 'label') {
        const label = action.label.toLowerCase()
        if (labels.some((one) => one.toLowerCase() === label))
          return end('done', 'the label is there already')
      }
      if (action.kind === 'review' && kind !== 'pull_request')
        return end('stale', `#${row.number} is no pull request`)
      if (state !== 'closed') return { verdict: 'go', author }
      if (action.kind === 'close') {
        // Ours, most likely: the call went out, and its answer was lost.
        return row.state === 'acting'
          ? end('done', 'it was done before')
          : end('stale', 'it is closed already')
      }
      const isSaid = action.kind === 'comment' || action.kind === 'review'
      if (isSaid && row.agent !== ORCHESTRATOR && !(await wasClosed(row)))
        return end('stale', 'it was closed meanwhile')
      return { verdict: 'go', author }
    },

    /** GitHub says 404 for what one may not do, too; what is still there was not meant. */
    async withoutRights(row: GithubAction, failure: GitHubFailure): Promise<GitHubFailure> {
      if (failure.kind !== 'gone' || row.number === null) return failure
      const now = await github.look(row.repository, row.number)
      if (!now.ok) return now.failure
      const message = `${failure.message} (#${row.number} is there: the token or the App may lack a permission)`
      return { ...failure, kind: 'forbidden', message }
    },
  }
}

function end(state: 'stale' | 'done', why: string): Standing {
  return { verdict: 'end', state, why }
}
