import { ORCHESTRATOR } from '../../base/agent.ts'
import { DEFAULT_RETRIES, pauseAfter } from '../../base/backoff.ts'
import { formatId } from '../../base/ids.ts'
import { describeAction, type RepositoryAction } from '../core/action.ts'
import { type GitHubFailure, type GitHubResult, isRecoverable } from '../core/failure.ts'
import { markOf, signed, withoutMentions } from '../core/signed-text.ts'
import { type ActionRow, changeAction, nextAction, nextActionDue } from '../store/actions.ts'
import { AUDIT, type GithubParts } from './parts.ts'
import type { WorkQueue } from './queue-loop.ts'
import { createRecheck } from './recheck-action.ts'
import type { Escalation } from './service-comments.ts'
import { approverLogins } from './settings.ts'

/** Rate limits don't count as attempts, so a rate-limited action needs a deadline. */
const MAX_LIMITED_MS = 6 * 3600_000

/** Our clock may be ahead of GitHub's, so the search for our own comment starts a little earlier. */
const CLOCK_SKEW_MS = 3600_000

/** `from`: the commit at which the branch starts. */
type StartedAction = RepositoryAction & { readonly from?: string }

/** Performs queued actions exactly once, after checking that they still apply. */
export function createActionQueue(
  parts: GithubParts,
  escalation: Pick<Escalation, 'actionFailed'>,
): WorkQueue {
  const { store, clock, github, people, settings, ownLogin, log } = parts
  const { recheck, explainMissing } = createRecheck(parts)
  const { signedAction, commitOf } = createWording(parts)

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
    if (answer.ok) return await end({ ...row, attempts }, action, 'done', 'done', answer.value.url)
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
    const place = {
      repository,
      number: action.number,
      kind: action.kind,
      since: created_at - CLOCK_SKEW_MS,
    }
    return await github.findText(place, markOf(key), login)
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
      await changeAction(tx, row.key, { state, note: why, url })
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
        await escalation.actionFailed(tx, row, action, why)
    })
  }

  /** The time of the approval, which may come days after the proposal. */
  async function readySince({ request, created_at }: ActionRow): Promise<number> {
    const asked = request === null ? undefined : await people.find(store, request)
    return asked?.decided_at ?? created_at
  }

  /** Retries after 1, 2 and 4 s (S3.20), then escalates (S3.12). */
  async function retryLater(row: ActionRow, action: RepositoryAction, failure: GitHubFailure) {
    if (failure.kind === 'gone') return await end(row, action, 'stale', failure.message)
    const isLimit = failure.kind === 'limited'
    const waited = clock.now() - (await readySince(row))
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
function createWording({ redact, team, settings }: Pick<GithubParts, 'redact' | 'team' | 'settings'>) {
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
      const tagged =
        row.agent === ORCHESTRATOR ? [...approverLogins(team(), settings()), ...settings().maintainers] : []
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
