import { ORCHESTRATOR } from '../base/agent.ts'
import { DEFAULT_RETRIES, pauseAfter } from '../base/backoff.ts'
import { formatId } from '../base/ids.ts'
import type { WorkQueue } from '../base/queue-loop.ts'
import { findHumanRequest } from '../people/people.ts'
import { escalateFailedAction, markOf, signed, withoutMentions } from './comments.ts'
import { describeAction, type RepositoryAction } from './core/action.ts'
import { isPaused } from './core/policy.ts'
import { AUDIT, type GithubDependencies } from './dependencies.ts'
import { type GitHubFailure, type GitHubResult, isRecoverable } from './port.ts'
import { isReply } from './process-events.ts'
import { approverLogins } from './roles.ts'
import { type ActionRow, changeAction, findWork, nextAction, nextActionDue } from './store.ts'

/** Rate limits don't count as attempts, so a rate-limited action needs a deadline. */
const MAX_LIMITED_MS = 6 * 3600_000

/** Our clock may be ahead of GitHub's, so the search for our own comment starts a little earlier. */
const CLOCK_SKEW_MS = 3600_000

/** `from`: the commit at which the branch starts. */
type StartedAction = RepositoryAction & { readonly from?: string }

/** Performs queued actions exactly once, after checking that they still apply. */
export function createActionQueue(deps: GithubDependencies): WorkQueue {
  const { store, clock, github, settings, ownLogin, log } = deps
  const { recheck, explainMissing } = createRecheck(deps)
  const { signedAction, commitOf } = createWording(deps)

  async function perform(row: ActionRow): Promise<void> {
    const action = JSON.parse(row.action) as StartedAction
    if (settings().dryRun) return await end(row, action, 'dry', 'dry_run is on')
    const check = await recheck(row, action)
    if (check.verdict === 'later') return await retryLater(row, action, check.failure)
    if (check.verdict === 'end') return await end(row, action, check.state, check.why)
    // An earlier call has an unknown outcome, so we look for our own text before writing it again.
    if (row.state === 'acting' && 'body' in action) {
      const found = await findOwn(row, action)
      if (!found.ok) return await retryLater(row, action, found.error)
      if (found.value !== undefined) return await end(row, action, 'done', 'it was already done', found.value)
    }
    const from = await branchStart(row, action)
    if (!from.ok) return await retryLater(row, action, await explainMissing(row, from.error))
    const attempts = row.attempts + 1
    const started =
      from.value === undefined ? {} : { action: JSON.stringify({ ...action, from: from.value }) }
    await store.write((tx) => changeAction(tx, row.key, { state: 'acting', attempts, ...started }))
    const explained = action.kind === 'close' ? await explainClosing(row, action, check.author) : undefined
    const answer =
      explained?.ok === false
        ? explained
        : await github.perform(row.repository, signedAction(row, action, check.author), {
            commit: commitOf(row, action),
            from: from.value,
          })
    if (answer.ok) return await end({ ...row, attempts }, action, 'done', 'done', answer.value)
    // A rate-limited call did nothing, but the comment before a close may already be posted.
    const isLimit = answer.error.kind === 'limited'
    const state = isLimit && explained?.ok !== true ? row.state : 'acting'
    const failure = await explainMissing(row, answer.error)
    await retryLater({ ...row, state, attempts: isLimit ? row.attempts : attempts }, action, failure)
  }

  /**
   * An empty branch carries no mark of ours. Its start is stored before the branch is created, so that we recognize
   * it after a crash even if its base has moved.
   */
  async function branchStart(
    row: ActionRow,
    action: StartedAction,
  ): Promise<GitHubResult<string | undefined>> {
    if (action.kind !== 'branch' || action.files !== undefined) return { ok: true, value: undefined }
    if (action.from !== undefined) return { ok: true, value: action.from }
    return await github.headOf(row.repository, action.base)
  }

  async function findOwn(row: ActionRow, action: Extract<RepositoryAction, { body: string }>) {
    const login = await ownLogin()
    if (login === undefined) {
      return {
        ok: false as const,
        error: { kind: 'unavailable' as const, message: 'cannot read our login from GitHub' },
      }
    }
    const { repository, key, created_at } = row
    if (action.kind === 'pull_request')
      return await github.findPullRequest(repository, action.head, markOf(key), login)
    const thread = {
      repository,
      number: action.number,
      kind: action.kind,
      since: created_at - CLOCK_SKEW_MS,
    }
    return await github.findText(thread, markOf(key), login)
  }

  /** Posts the comment that explains a close, once. */
  async function explainClosing(
    row: ActionRow,
    action: Extract<RepositoryAction, { kind: 'close' }>,
    author: string | undefined,
  ): Promise<GitHubResult<unknown>> {
    const comment = closingComment(action)
    if (row.state === 'acting') {
      const found = await findOwn(row, comment)
      if (!found.ok || found.value !== undefined) return found
    }
    return await github.perform(row.repository, signedAction(row, comment, author))
  }

  async function end(
    row: ActionRow,
    action: RepositoryAction,
    state: 'done' | 'stale' | 'dry' | 'failed',
    why: string,
    url?: string,
  ) {
    await store.write(async (tx) => {
      changeAction(tx, row.key, { state, note: why, url })
      tx.audit({
        type: state === 'failed' ? AUDIT.failure : state === 'done' ? AUDIT.success : AUDIT.logged,
        class: 'public',
        actor: row.agent,
        ...(row.agent === ORCHESTRATOR ? {} : { subject: ORCHESTRATOR }),
        text: `${STATE_TEXT[state]}: ${describeAction(action)} in ${row.repository}${state === 'done' ? '' : ` (${why})`}`,
        ...(row.confidence === null ? {} : { confidence: row.confidence }),
        data: {
          key: row.key,
          work: row.work,
          repository: row.repository,
          ...(row.request === null ? {} : { request_id: formatId('req', row.request) }),
          ...(url === undefined ? {} : { url }),
        },
      })
      // A failing comment of the service must not cause another comment.
      if (state === 'failed' && row.agent !== ORCHESTRATOR)
        await escalateFailedAction(deps, tx, row, action, why)
    })
  }

  /** Retries after 1, 2 and 4 s (S3.20), then escalates (S3.12). */
  async function retryLater(row: ActionRow, action: RepositoryAction, failure: GitHubFailure) {
    if (failure.kind === 'gone') return await end(row, action, 'stale', failure.message)
    const isLimit = failure.kind === 'limited'
    const asked = row.request === null ? undefined : await findHumanRequest(store, row.request)
    // An approval may come days after the proposal.
    const waited = clock.now() - (asked?.decided_at ?? row.created_at)
    const isOver = isLimit ? waited > MAX_LIMITED_MS : row.attempts > DEFAULT_RETRIES
    if (!isRecoverable(failure) || isOver) return await end(row, action, 'failed', failure.message)
    // A failed check counts as an attempt too, or it would be retried forever.
    const attempts = isLimit
      ? row.attempts
      : Math.max(1, row.state === 'acting' ? row.attempts : row.attempts + 1)
    const wait = Math.max(failure.retryAfterMs ?? 0, pauseAfter(Math.max(1, attempts)))
    log.warn({ action: row.key, failure }, 'an action failed on GitHub; retrying')
    await store.write((tx) =>
      changeAction(tx, row.key, {
        state: row.state,
        attempts,
        notBefore: tx.now + wait,
        note: failure.message,
      }),
    )
  }

  return {
    async next(): Promise<boolean> {
      const row = await nextAction(store, clock.now())
      if (row === undefined) return false
      await perform(row)
      return true
    },
    due: () => nextActionDue(store),
  }
}

const STATE_TEXT = {
  done: 'Done',
  stale: 'No longer applies',
  dry: 'Dry run',
  failed: 'Failed',
} as const

/** Prepares the text that goes to GitHub: redacted, signed, and with the mark of the action (C25). */
function createWording({ redact, team, settings }: GithubDependencies) {
  /** The trailer identifies the commit after a crash (C25) and tells readers that an agent wrote it. */
  function commitMessage(text: string, { key, agent }: ActionRow): string {
    return `${withoutMentions(redact(text), [])}\n\nWritten by the AI agent ${agent}.\nOrchub-Action: ${key}`
  }

  return {
    /** The message of the commit that a pull request creates. */
    commitOf: (row: ActionRow, action: RepositoryAction): string | undefined =>
      action.kind === 'pull_request' ? commitMessage(action.title, row) : undefined,

    /** Lets the text mention `author`, the author of the thread. */
    signedAction(row: ActionRow, action: RepositoryAction, author: string | undefined): RepositoryAction {
      if (action.kind === 'branch')
        return { ...action, message: commitMessage(action.message ?? 'Written by an agent', row) }
      if (!('body' in action)) return action
      // The service chose the mentions in its own comments.
      const tagged = row.agent === ORCHESTRATOR ? [...approverLogins(team()), ...settings().maintainers] : []
      const body = signed(redact(action.body), {
        key: row.key,
        agent: row.agent,
        mayMention: [...(author === undefined ? [] : [author]), ...tagged],
        ...(row.request === null ? {} : { approvedAs: formatId('req', row.request) }),
      })
      return { ...action, body }
    },
  }
}

/** Posted before the close, so that the author learns the reason. */
function closingComment({
  number,
  duplicate_of: other,
  reason = '',
}: Extract<RepositoryAction, { kind: 'close' }>): Extract<RepositoryAction, { kind: 'comment' }> {
  const as = other === undefined ? 'as not planned' : `as a duplicate of #${other}`
  const why = reason.trim() === '' ? '' : `\n\n${reason.trim()}`
  return { kind: 'comment', number, body: `This is being closed ${as}.${why}` }
}

const PAUSE_CACHE_MS = 10_000

/** `go`: perform the action. `end`: it no longer applies or is already done. `later`: GitHub could not be asked. */
type ActionCheck =
  | { verdict: 'go'; author: string | undefined }
  | { verdict: 'end'; state: 'stale' | 'done'; why: string }
  | { verdict: 'later'; failure: GitHubFailure }

/** Checks an action against the current thread: days may pass between a proposal and its approval. */
function createRecheck({ store, github, clock }: GithubDependencies) {
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
