import { type Action, actionKey, describeAction } from '../../github/action.ts'
import { type Answer, type GitHubFailure, isRecoverable } from '../../github/failure.ts'
import { markOf, signed, withoutMentions } from '../../github/notice.ts'
import { isPaused } from '../../github/pause.ts'
import { ORCHESTRATOR } from '../../model/agent.ts'
import { DEFAULT_RETRIES, pauseAfter } from '../../model/backoff.ts'
import { formatId } from '../../model/identifier.ts'
import {
  changeAction,
  type GithubAction,
  insertAction,
  nextAction,
  nextActionDue,
} from '../../store/github.ts'
import type { Tx } from '../../store/store.ts'
import type { Proposals } from './proposals.ts'
import { AUDIT, type GithubParts, isReply } from './settings.ts'

/** What limits cost time and no attempts; but not for ever. */
const LONGEST_WAIT_MS = 6 * 3600_000
const PAUSE_KNOWN_MS = 10_000
export const ERROR_LABEL = 'agent-error'

/** Does what was decided, once, after another look at how things stand. */
export function createActing(parts: GithubParts, proposals: Proposals) {
  const { store, clock, github, settings, ownLogin, redact, log } = parts
  const pauses = new Map<string, { at: number; is: boolean }>()

  async function act(row: GithubAction): Promise<void> {
    const action = JSON.parse(row.action) as Action
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
    const attempts = row.attempts + 1
    await store.write((tx) => changeAction(tx, row.key, { state: 'acting', attempts }))
    const explained = action.kind === 'close' ? await explain(row, action, standing.author) : undefined
    const answer =
      explained?.ok === false
        ? explained
        : await github.perform(row.repository, written(row, action, standing.author), commitOf(row, action))
    if (answer.ok) return await end({ ...row, attempts }, action, 'done', 'done', answer.value.url)
    // What was refused for a limit was not tried.
    const isLimit = answer.failure.kind === 'limited'
    const failure = await withoutRights(row, answer.failure)
    await later(isLimit ? row : { ...row, attempts, state: 'acting' }, action, failure)
  }

  /** GitHub says 404 for what one may not do, too; what is still there was not meant. */
  async function withoutRights(row: GithubAction, failure: GitHubFailure): Promise<GitHubFailure> {
    if (failure.kind !== 'gone' || row.number === null) return failure
    const now = await github.look(row.repository, row.number)
    if (!now.ok) return now.failure
    const message = `${failure.message} (#${row.number} is there: the token or the App may lack a permission)`
    return { ...failure, kind: 'forbidden', message }
  }

  type Standing =
    | { verdict: 'go'; author: string | undefined }
    | { verdict: 'end'; state: 'stale' | 'done'; why: string }
    | { verdict: 'later'; failure: GitHubFailure }

  /** Between a proposal and its approval lie up to three days. */
  async function lookAgain(row: GithubAction, action: Action): Promise<Standing> {
    const isAnswer = isReply(row.work)
    const paused = isAnswer ? { ok: true as const, value: false } : await isAllPaused(row)
    if (!paused.ok) return { verdict: 'later', failure: paused.failure }
    if (paused.value)
      return { verdict: 'end', state: 'stale', why: 'people paused the team in the repository' }
    if (row.number === null) return { verdict: 'go', author: undefined }
    const now = await github.look(row.repository, row.number)
    if (!now.ok) {
      if (now.failure.kind !== 'gone') return { verdict: 'later', failure: now.failure }
      return { verdict: 'end', state: 'stale', why: `#${row.number} is not there any more` }
    }
    const { labels, state, author } = now.value
    const isOwn = row.agent === ORCHESTRATOR
    if (!isAnswer && isPaused(labels, []))
      return { verdict: 'end', state: 'stale', why: 'people paused the team there' }
    if (
      action.kind === 'label' &&
      labels.some((label) => label.toLowerCase() === action.label.toLowerCase())
    ) {
      return { verdict: 'end', state: 'done', why: 'the label is there already' }
    }
    if (action.kind === 'close' && state === 'closed') {
      // Ours, most likely: the call went out, and its answer was lost.
      if (row.state === 'acting') return { verdict: 'end', state: 'done', why: 'it was done before' }
      return { verdict: 'end', state: 'stale', why: 'it is closed already' }
    }
    if (!isOwn && state === 'closed' && (action.kind === 'comment' || action.kind === 'review')) {
      return { verdict: 'end', state: 'stale', why: 'it was closed meanwhile' }
    }
    return { verdict: 'go', author }
  }

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
    // Clocks differ; a minute is more than theirs and ours may.
    const place = { repository, number: action.number, kind: action.kind, since: created_at - 60_000 }
    return await github.findWritten(place, markOf(key), login)
  }

  /** Whoever wrote it finds out why it was closed, and by whom, before it is: once, as everything. */
  async function explain(
    row: GithubAction,
    { number, duplicate_of: other, reason = '' }: Extract<Action, { kind: 'close' }>,
    author: string | undefined,
  ): Promise<Answer<unknown>> {
    const as = other === undefined ? 'as not planned' : `as a duplicate of #${other}`
    const body = `This is being closed ${as}.${reason.trim() === '' ? '' : `\n\n${reason.trim()}`}`
    const comment = { kind: 'comment' as const, number, body }
    if (row.state === 'acting') {
      const found = await findOwn(row, comment)
      if (!found.ok || found.value !== undefined) return found
    }
    return await github.perform(row.repository, written(row, comment, author))
  }

  /** What the commit says that comes with a pull request. */
  function commitOf(row: GithubAction, action: Action): string | undefined {
    return action.kind === 'pull_request' ? commitMessage(redact(action.title), row) : undefined
  }

  function written(row: GithubAction, action: Action, author: string | undefined): Action {
    if (action.kind === 'branch')
      return { ...action, message: commitMessage(redact(action.message ?? 'Written by an agent'), row) }
    if (!('body' in action)) return action
    const isOwn = row.agent === ORCHESTRATOR
    const mayMention = [
      ...(author === undefined ? [] : [author]),
      ...(isOwn ? proposals.approverLogins() : []),
    ]
    const body = signed(redact(action.body), {
      key: row.key,
      agent: row.agent,
      mayMention,
      ...(row.request === null ? {} : { approvedAs: formatId('req', row.request) }),
    })
    return { ...action, body }
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
      if (state === 'failed') await escalate(tx, row, action, why)
    })
  }

  /** S3.20: after 1, 2 and 4 s; then people are told (S3.12). */
  async function later(row: GithubAction, action: Action, failure: GitHubFailure) {
    if (failure.kind === 'gone') return await end(row, action, 'stale', failure.message)
    const isLimit = failure.kind === 'limited'
    const waited = clock.now() - row.created_at
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

  /** What the service says about a failure never leads to more of the same. */
  async function escalate(tx: Tx, row: GithubAction, action: Action, why: string) {
    if (row.number === null || row.agent === ORCHESTRATOR) return
    const label: Action = { kind: 'label', number: row.number, label: ERROR_LABEL }
    const source = `${row.work}/error`
    await insertAction(tx, {
      key: actionKey(source, label),
      work: source,
      agent: ORCHESTRATOR,
      repository: row.repository,
      number: row.number,
      action: JSON.stringify(label),
      confidence: null,
      rationale: '',
      state: 'ready',
      request: null,
      note: null,
    })
    const tagged = settings()
      .maintainers.map((login) => `@${login}`)
      .join(' ')
    const text = `**${row.agent}** could not ${describeAction(action)}: ${redact(why)} ${tagged}`.trimEnd()
    await proposals.say(tx, source, row.repository, row.number, text)
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

/** By it the service knows its own commit again (C25), and everybody that an agent wrote it. */
function commitMessage(text: string, { key, agent }: GithubAction): string {
  return `${withoutMentions(text, [])}\n\nWritten by the AI agent ${agent}.\nOrchub-Action: ${key}`
}
