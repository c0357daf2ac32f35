import type { RepositoryAction } from '../core/action.ts'
import type { GitHubResult, PerformOptions } from '../port.ts'
import { type AuthoredText, mapped, notOurs, urlIn } from './responses.ts'

type RepositoryCall = <Data>(route: string, params?: Record<string, unknown>) => Promise<GitHubResult<Data>>

const REF = 'GET /repos/{owner}/{repo}/git/ref/{ref}'
const COMMIT = 'GET /repos/{owner}/{repo}/git/commits/{commit_sha}'
const PULLS = '/repos/{owner}/{repo}/pulls'

/** Creates branches and pull requests. Existing ones of other authors are left alone. */
export function createBranches(repository: string, call: RepositoryCall) {
  async function baseOf(named: string | undefined): Promise<GitHubResult<string>> {
    if (named !== undefined) return { ok: true, value: named }
    const repository = call<{ default_branch: string }>('GET /repos/{owner}/{repo}')
    return await mapped(repository, ({ default_branch }) => default_branch)
  }

  async function commitAt(branch: string): Promise<GitHubResult<string>> {
    const ref = call<{ object: { sha: string } }>(REF, { ref: `heads/${branch}` })
    return await mapped(ref, ({ object }) => object.sha)
  }

  async function headOf(named: string | undefined): Promise<GitHubResult<string>> {
    const base = await baseOf(named)
    return base.ok ? await commitAt(base.value) : base
  }

  /** `from`: the start of the branch, by default the head of its base. */
  async function createBranch(
    { branch, base, files, message = '' }: Omit<Extract<RepositoryAction, { kind: 'branch' }>, 'kind'>,
    from?: string,
  ): Promise<GitHubResult<string | undefined>> {
    const head = from === undefined ? await headOf(base) : { ok: true as const, value: from }
    if (!head.ok) return head
    const tip = files === undefined ? head : await commitFiles(call, { parent: head.value, message, files })
    if (!tip.ok) return tip
    // Only this call makes the commit visible, so a crash before it leaves nothing half-done.
    const created = await call('POST /repos/{owner}/{repo}/git/refs', {
      ref: `refs/heads/${branch}`,
      sha: tip.value,
    })
    if (created.ok) return { ok: true, value: undefined }
    if (!/already exists/i.test(created.error.message)) return created
    // Either we created it before a crash, or somebody else did. Our commit message contains the key of the action; an
    // empty branch has no mark, but ours starts here.
    const there = await commitAt(branch)
    if (!there.ok) return there
    const own =
      files === undefined
        ? { ok: true as const, value: there.value === head.value }
        : await mapped(
            call<{ message: string }>(COMMIT, { commit_sha: there.value }),
            (commit) => commit.message.trim() === message.trim(),
          )
    if (!own.ok) return own
    return own.value ? { ok: true, value: undefined } : notOurs(`a branch ${branch}`)
  }

  async function openPullRequest(
    { head, base, title, body, files }: Extract<RepositoryAction, { kind: 'pull_request' }>,
    commit: string | undefined,
  ): Promise<GitHubResult<string | undefined>> {
    const owner = repository.split('/')[0]!
    // Our own pull request contains the same mark.
    const mark = body.slice(Math.max(0, body.lastIndexOf('<!--')))
    const open = await call<AuthoredText[]>(`GET ${PULLS}`, { head: `${owner}:${head}`, state: 'open' })
    if (!open.ok) return open
    const own = open.value.find((one) => one.body?.includes(mark))
    if (own !== undefined) return { ok: true, value: urlIn(own) }
    if (open.value.length > 0) return notOurs(`a pull request from ${head}`)
    if (files !== undefined) {
      const created = await createBranch({
        branch: head,
        base,
        files,
        message: commit ?? `${title}\n\n${mark}`,
      })
      if (!created.ok) return created
    }
    const into = await baseOf(base)
    return into.ok
      ? await mapped(call(`POST ${PULLS}`, { head, base: into.value, title, body }), urlIn)
      : into
  }

  return {
    headOf,
    perform: (
      action: Extract<RepositoryAction, { kind: 'branch' | 'pull_request' }>,
      { commit, from }: PerformOptions,
    ) => (action.kind === 'branch' ? createBranch(action, from) : openPullRequest(action, commit)),
  }
}

interface BranchCommit {
  readonly parent: string
  readonly message: string
  readonly files: readonly { readonly path: string; readonly content: string }[]
}

/** Creates a commit that no branch contains yet, and returns its hash. */
async function commitFiles(
  call: RepositoryCall,
  { parent, message, files }: BranchCommit,
): Promise<GitHubResult<string>> {
  const before = await call<{ tree: { sha: string } }>(COMMIT, { commit_sha: parent })
  if (!before.ok) return before
  const tree = await call<{ sha: string }>('POST /repos/{owner}/{repo}/git/trees', {
    base_tree: before.value.tree.sha,
    tree: files.map(({ path, content }) => ({ path, content, mode: '100644', type: 'blob' })),
  })
  if (!tree.ok) return tree
  const commit = { message, tree: tree.value.sha, parents: [parent] }
  return await mapped(
    call<{ sha: string }>('POST /repos/{owner}/{repo}/git/commits', commit),
    ({ sha }) => sha,
  )
}
