import type { Action } from '../core/action.ts'
import type { Answer } from '../core/failure.ts'
import type { How, Performed } from '../port.ts'
import { done, notOurs, performed, type Written } from './answers.ts'
import { commitFiles } from './commit.ts'

export type RepositoryCall = <Data>(route: string, params?: Record<string, unknown>) => Promise<Answer<Data>>

const REF = 'GET /repos/{owner}/{repo}/git/ref/{ref}'
const PULLS = '/repos/{owner}/{repo}/pulls'

/** Branches and pull requests of one repository. What is there already and is not ours is left alone. */
export function createBranches(repository: string, call: RepositoryCall) {
  async function baseOf(named: string | undefined): Promise<Answer<string>> {
    if (named !== undefined) return { ok: true, value: named }
    const answer = await call<{ default_branch: string }>('GET /repos/{owner}/{repo}')
    return answer.ok ? { ok: true, value: answer.value.default_branch } : answer
  }

  async function commitAt(branch: string): Promise<Answer<string>> {
    const ref = await call<{ object: { sha: string } }>(REF, { ref: `heads/${branch}` })
    return ref.ok ? { ok: true, value: ref.value.object.sha } : ref
  }

  async function headOf(named: string | undefined): Promise<Answer<string>> {
    const base = await baseOf(named)
    return base.ok ? await commitAt(base.value) : base
  }

  /** `from`: the commit it begins at; else where its base is now. */
  async function make(
    { branch, base, files, message = '' }: Omit<Extract<Action, { kind: 'branch' }>, 'kind'>,
    from?: string,
  ): Promise<Answer<Performed>> {
    const head = from === undefined ? await headOf(base) : { ok: true as const, value: from }
    if (!head.ok) return head
    if (files !== undefined) return await commitFiles(call, { branch, parent: head.value, message, files })
    const made = await call('POST /repos/{owner}/{repo}/git/refs', {
      ref: `refs/heads/${branch}`,
      sha: head.value,
    })
    if (made.ok) return { ok: true, value: {} }
    if (!/already exists/i.test(made.failure.message)) return made
    // We, before a crash, or somebody else: an empty branch carries no mark, but it is where we would begin it.
    const there = await commitAt(branch)
    if (!there.ok) return there
    return there.value === head.value ? { ok: true, value: {} } : notOurs(`a branch ${branch}`)
  }

  async function openPullRequest(
    { head, base, title, body, files }: Extract<Action, { kind: 'pull_request' }>,
    commit: string | undefined,
  ): Promise<Answer<Performed>> {
    const owner = repository.split('/')[0]!
    // The body ends with a mark, and so does that of ours.
    const mark = body.slice(Math.max(0, body.lastIndexOf('<!--')))
    const open = await call<Written[]>(`GET ${PULLS}`, { head: `${owner}:${head}`, state: 'open' })
    if (!open.ok) return open
    const own = open.value.find((one) => one.body?.includes(mark))
    if (own !== undefined) return { ok: true, value: performed(own) }
    if (open.value.length > 0) return notOurs(`a pull request from ${head}`)
    if (files !== undefined) {
      const made = await make({ branch: head, base, files, message: commit ?? `${title}\n\n${mark}` })
      if (!made.ok) return made
    }
    const into = await baseOf(base)
    return into.ok ? await done(call(`POST ${PULLS}`, { head, base: into.value, title, body })) : into
  }

  return {
    headOf,
    perform: (action: Extract<Action, { kind: 'branch' | 'pull_request' }>, { commit, from }: How) =>
      action.kind === 'branch' ? make(action, from) : openPullRequest(action, commit),
  }
}
