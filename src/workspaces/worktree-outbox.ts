import { openPart } from './directory.ts'
import { type GitPlace, IGNORE_DIRTY, runGit } from './git.ts'
import { formatBytes } from './limits.ts'
import { attempt, type Outcome } from './problem.ts'
import { findUnmerged, type Worktree } from './worktree.ts'
import { makeFolder, replaceFile } from './writing.ts'

export interface Commit {
  readonly hash: string
  readonly author: string
  readonly time: string
  readonly subject: string
}

/** outbox/git/branch.json: what an agent's branch brings. */
export interface BranchSummary {
  readonly branch: string
  readonly base: string
  readonly head: string
  readonly commits: readonly Commit[]
  readonly files: readonly { readonly path: string; readonly added: number; readonly deleted: number }[]
  /** Files that are in no commit. */
  readonly uncommitted: readonly string[]
  /** Why a diff is not there. */
  readonly notes: readonly string[]
}

const LISTS = 16 * 1024 * 1024
const DIFF = 10 * 1024 * 1024
const MOST_COMMITS = 1000
const PLAIN_DIFF = ['--no-ext-diff', '--no-textconv', '--no-color', '--no-renames', IGNORE_DIRTY]

/** Puts commits, diff and branch into outbox/git/ (nothing is merged), and says what is there. */
export function summarizeBranch(worktree: Worktree): Promise<Outcome<BranchSummary>> {
  return attempt('outbox/git', async () => {
    const place = { gitDir: worktree.gitDir }
    const own = { gitDir: worktree.ownDir, workTree: worktree.path }
    const range = `${worktree.base}..refs/heads/${worktree.branch}`
    const notes: string[] = []
    const head = await text(place, ['rev-parse', `refs/heads/${worktree.branch}`])
    const commits = parseCommits(
      await text(place, [
        'log',
        `--max-count=${MOST_COMMITS}`,
        '-z',
        '--format=%H%x1f%an%x1f%aI%x1f%s',
        range,
      ]),
    )
    const files = parseNumbers(await text(place, ['diff', '--numstat', '-z', ...PLAIN_DIFF, range]))
    const changes = await diff(place, [range], 'changes.diff', notes)
    const loose = await diff(own, ['HEAD'], 'uncommitted.diff', notes)
    const unmerged = await findUnmerged(worktree)
    const uncommitted = unmerged.ok ? unmerged.value.uncommitted : []
    const { branch, base } = worktree
    const summary = { branch, base, head: head.trim(), commits, files, uncommitted, notes }

    const outbox = openPart(path(worktree), 'outbox')
    try {
      const folder = makeFolder(outbox, 'git')
      try {
        replaceFile(folder, 'branch.json', `${JSON.stringify(summary, null, 2)}\n`, 0o644)
        if (changes !== undefined) replaceFile(folder, 'changes.diff', changes, 0o644)
        if (loose) replaceFile(folder, 'uncommitted.diff', loose, 0o644)
      } finally {
        folder.close()
      }
    } finally {
      outbox.close()
    }
    return summary
  })
}

const path = ({ path: worktree }: Worktree) => worktree.slice(0, worktree.lastIndexOf('/'))

/** Empty where git refuses: a branch that the agent has deleted is a branch without commits. */
async function text(place: GitPlace, args: readonly string[]): Promise<string> {
  const ran = await runGit(place, args, LISTS)
  return ran.ok ? ran.out : ''
}

async function diff(
  place: GitPlace,
  args: readonly string[],
  name: string,
  notes: string[],
): Promise<string | undefined> {
  const ran = await runGit(place, ['diff', '--binary', ...PLAIN_DIFF, ...args], DIFF)
  if (ran.ok) return ran.out
  const isLarge = ran.code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER'
  notes.push(`${name} is left out: ${isLarge ? `it is over ${formatBytes(DIFF)}` : ran.err || 'git refused'}`)
  return undefined
}

function parseCommits(out: string): Commit[] {
  return out
    .split('\0')
    .filter((record) => record !== '')
    .map((record) => {
      const [hash = '', author = '', time = '', subject = ''] = record.split('\x1f')
      return { hash, author, time, subject }
    })
}

/** Binary files have a dash for both numbers. */
function parseNumbers(out: string): BranchSummary['files'] {
  return out
    .split('\0')
    .filter((record) => record !== '')
    .map((record) => {
      const [added = '', deleted = '', ...name] = record.split('\t')
      return { path: name.join('\t'), added: Number(added) || 0, deleted: Number(deleted) || 0 }
    })
}
