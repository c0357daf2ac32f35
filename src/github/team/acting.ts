import { ORCHESTRATOR } from '../../base/agent.ts'
import { DEFAULT_RETRIES, pauseAfter } from '../../base/backoff.ts'
import { formatId } from '../../base/ids.ts'
import { findHumanRequest } from '../../people/store/human-requests.ts'
import { type Action, describeAction } from '../core/action.ts'
import { type Answer, type GitHubFailure, isRecoverable } from '../core/failure.ts'
import { markOf } from '../core/notice.ts'
import { changeAction, type GithubAction, nextAction, nextActionDue } from '../store/actions.ts'
import type { Escalating } from './escalating.ts'
import { createLooking } from './looking.ts'
import { AUDIT, type GithubParts } from './settings.ts'
import { closingComment, createWriting } from './writing.ts'

/** What limits cost time and no attempts; but not for ever. */
const LONGEST_WAIT_MS = 6 * 3600_000

/** Where ours is ahead of GitHub's, what we wrote seems older than it is: looking a little further back costs nothing. */
const CLOCKS_DIFFER_MS = 3600_000

/** An action, and the commit that its branch begins at. */
type Begun = Action & { readonly from?: string }

/** Does what was decided, once, after another look at how things stand. */
export function createActing(parts: GithubParts, escalating: Pick<Escalating, 'notDone'>) {
  const { store, clock, github, settings, ownLogin, log } = parts
  const { lookAgain, withoutRights } = createLooking(parts)
  const { written, commitOf } = createWriting(parts)

  async function act(row: GithubAction): Promise<void> {
    const action = JSON.parse(row.action) as Begun
    if (settings().dryRun) return await end(row, action, 'dry', 'dry_run: it was not done')
    const standing = await lookAgain(row, action)
    if (standing.verdict === 'later') return await later(row, action, standing.failure)
    if (standing.verdict === 'end') return await end(row, action, standing.state, standing.why)
    // A call went out before, and what became of it is not known: our own words are looked for.
    if (row.state === 'acting' && 'body' in action) {
      const found = await findOwn(row, action)
      if (!found.ok) return await later(row, action, found.failure)
      if (found.value !== undefined) return await end(row, action, 'done', 'it was done before', found.value)
    }
    const from = await beginningOf(row, action)
    if (!from.ok) return await later(row, action, await withoutRights(row, from.failure))
    const attempts = row.attempts + 1
    const begun = from.value === undefined ? {} : { action: JSON.stringify({ ...action, from: from.value }) }
    await store.write((tx) => changeAction(tx, row.key, { state: 'acting', attempts, ...begun }))
    const explained = action.kind === 'close' ? await explain(row, action, standing.author) : undefined
    const answer =
      explained?.ok === false
        ? explained
        : await github.perform(row.repository, written(row, action, standing.author), {
            commit: commitOf(row, action),
            from: from.value,
          })
    if (answer.ok) return await end({ ...row, attempts }, action, 'done', 'done', answer.value.url)
    // What was refused for a limit was not tried; but of a close, the comment may be there.
    const isLimit = answer.failure.kind === 'limited'
    const state = isLimit && explained?.ok !== true ? row.state : 'acting'
    const failure = await withoutRights(row, answer.failure)
    await later({ ...row, state, attempts: isLimit ? row.attempts : attempts }, action, failure)
  }

  /**
   * A branch without a commit of its own carries no mark: where it begins is stored before it is made, so that it is
   * known again after a crash, wherever its base has moved to meanwhile.
   */
  async function beginningOf(row: GithubAction, action: Begun): Promise<Answer<string | undefined>> {
    if (action.kind !== 'branch' || action.files !== undefined) return { ok: true, value: undefined }
    if (action.from !== undefined) return { ok: true, value: action.from }
    return await github.headOf(row.repository, action.base)
  }

  async function findOwn(row: GithubAction, action: Extract<Action, { body: string }>) {
    const login = await ownLogin()
    if (login === undefined) {
      return {
        ok: false as const,
        failure: { kind: 'unavailable' as const, message: 'GitHub does not say who we are' },
      }
    }
    const { repository, key, created_at } = row
    if (action.kind === 'pull_request')
      return await github.findPullRequest(repository, action.head, markOf(key), login)
    const place = {
      repository,
      number: action.number,
      kind: action.kind,
      since: created_at - CLOCKS_DIFFER_MS,
    }
    return await github.findWritten(place, markOf(key), login)
  }

  /** Once, as everything. */
  async function explain(
    row: GithubAction,
    action: Extract<Action, { kind: 'close' }>,
    author: string | undefined,
  ): Promise<Answer<unknown>> {
    const comment = closingComment(action)
    if (row.state === 'acting') {
      const found = await findOwn(row, comment)
      if (!found.ok || found.value !== undefined) return found
    }
    return await github.perform(row.repository, written(row, comment, author))
  }

  async function end(
    row: GithubAction,
    action: Action,
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
        text: `${WORDS[state]}: ${describeAction(action)} in ${row.repository}${state === 'done' ? '' : ` (${why})`}`,
        ...(row.confidence === null ? {} : { confidence: row.confidence }),
        data: {
          key: row.key,
          work: row.work,
          repository: row.repository,
          ...(row.request === null ? {} : { request_id: formatId('req', row.request) }),
          ...(url === undefined ? {} : { url }),
        },
      })
      // What goes wrong with the service's own words leads to no more of them.
      if (state === 'failed' && row.agent !== ORCHESTRATOR) await escalating.notDone(tx, row, action, why)
    })
  }

  /** What people approved may be days old. */
  async function readySince({ request, created_at }: GithubAction): Promise<number> {
    const asked = request === null ? undefined : await findHumanRequest(store, request)
    return asked?.decided_at ?? created_at
  }

  /** S3.20: after 1, 2 and 4 s; then people are told (S3.12). */
  async function later(row: GithubAction, action: Action, failure: GitHubFailure) {
    if (failure.kind === 'gone') return await end(row, action, 'stale', failure.message)
    const isLimit = failure.kind === 'limited'
    const waited = clock.now() - (await readySince(row))
    const isOver = isLimit ? waited > LONGEST_WAIT_MS : row.attempts > DEFAULT_RETRIES
    if (!isRecoverable(failure) || isOver) return await end(row, action, 'failed', failure.message)
    // A look that failed costs an attempt too, or it would be tried for ever.
    const attempts = isLimit
      ? row.attempts
      : Math.max(1, row.state === 'acting' ? row.attempts : row.attempts + 1)
    const wait = Math.max(failure.retryAfterMs ?? 0, pauseAfter(Math.max(1, attempts)))
    log.warn({ action: row.key, failure }, 'GitHub did not take an action; it is tried again')
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
    /** One that is due; says whether there was one. */
    async next(): Promise<boolean> {
      const row = await nextAction(store, clock.now())
      if (row === undefined) return false
      await act(row)
      return true
    },
    due: () => nextActionDue(store),
  }
}

const WORDS = { done: 'Done', stale: 'Not done any more', dry: 'Would be done', failed: 'Failed' } as const
