import type { Answer } from '../core/failure.ts'
import type { Performed } from '../port.ts'

export interface CommitFile {
  readonly path: string
  readonly content: string
}

interface Commit {
  readonly branch: string
  readonly parent: string
  readonly message: string
  readonly files: readonly CommitFile[]
}

type Call = <Data>(route: string, params?: Record<string, unknown>) => Promise<Answer<Data>>

/** A branch with one commit. Nothing is to be seen of it before the last call, so that a crash leaves no half of it. */
export async function commitFiles(
  call: Call,
  { branch, parent, message, files }: Commit,
): Promise<Answer<Performed>> {
  const before = await call<{ tree: { sha: string } }>('GET /repos/{owner}/{repo}/git/commits/{commit_sha}', {
    commit_sha: parent,
  })
  if (!before.ok) return before
  const tree = await call<{ sha: string }>('POST /repos/{owner}/{repo}/git/trees', {
    base_tree: before.value.tree.sha,
    tree: files.map(({ path, content }) => ({ path, content, mode: '100644', type: 'blob' })),
  })
  if (!tree.ok) return tree
  const commit = await call<{ sha: string; html_url?: string }>('POST /repos/{owner}/{repo}/git/commits', {
    message,
    tree: tree.value.sha,
    parents: [parent],
  })
  if (!commit.ok) return commit
  const made = await call('POST /repos/{owner}/{repo}/git/refs', {
    ref: `refs/heads/${branch}`,
    sha: commit.value.sha,
  })
  if (made.ok) return { ok: true, value: {} }
  if (!/already exists/i.test(made.failure.message)) return made
  return (await isOwn(call, branch, message))
    ? { ok: true, value: {} }
    : {
        ok: false,
        failure: { kind: 'invalid', message: `There is a branch ${branch} already, and it is not ours` },
      }
}

/** We made it before a crash: its commit has the very message, which holds the key of the action. */
async function isOwn(call: Call, branch: string, message: string): Promise<boolean> {
  const ref = await call<{ object: { sha: string } }>('GET /repos/{owner}/{repo}/git/ref/{ref}', {
    ref: `heads/${branch}`,
  })
  if (!ref.ok) return false
  const commit = await call<{ message: string }>('GET /repos/{owner}/{repo}/git/commits/{commit_sha}', {
    commit_sha: ref.value.object.sha,
  })
  return commit.ok && commit.value.message.trim() === message.trim()
}
