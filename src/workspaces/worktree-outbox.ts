import { openPart } from './directory.ts'
import { showName } from './entry-name.ts'
import { type GitPlace, IGNORE_DIRTY, runGit } from './git.ts'
import { attempt, type Outcome, ProblemError, refuse } from './problem.ts'
import type { Worktree } from './worktree.ts'
import { type CommitsElsewhere, findElsewhere, nameCommits } from './worktree-commits.ts'
import { listFiles, nameFiles } from './worktree-files.ts'
import { inWorktree } from './worktree-folder.ts'
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
  /** What the agent committed while on no branch or on another: in none of the above, and in no diff. */
  readonly elsewhere: readonly CommitsElsewhere[]
  /** Files that are in no commit. */
  readonly uncommitted: readonly string[]
  /** Why a diff is not there, and what else is not as it should be. */
  readonly notes: readonly string[]
}

const LISTS = 16 * 1024 * 1024
const DIFF = 10 * 1024 * 1024
const MOST_COMMITS = 1000
const PLAIN_DIFF = ['--no-ext-diff', '--no-textconv', '--no-color', '--no-renames', IGNORE_DIRTY]

/** Puts commits, diff and branch into outbox/git/ (nothing is merged), and says what is there. */
export function summarizeBranch(worktree: Worktree): Promise<Outcome<BranchSummary>> {
  return attempt('outbox/git', async () => {
    const notes: string[] = []
    const head = await findHead(worktree)
    if (head === '') notes.push(`The agent has deleted its branch ${worktree.branch}.`)
    const { commits, files, changes } = head === '' ? NOTHING : await readBranch(worktree, notes)
    const elsewhere = await findElsewhere(worktree)
    const hasCommits = commits.length > 0 || elsewhere?.length !== 0
    const { loose, uncommitted } = await lookInside(worktree, hasCommits, notes)
    if (elsewhere === undefined) notes.push('Git cannot tell whether there are commits on other branches.')
    notes.push(...(elsewhere ?? []).map((found) => elsewhereNote(worktree, found)))
    const { branch, base } = worktree
    const summary = {
      ...{ branch, base, head, commits, files },
      ...{ elsewhere: elsewhere ?? [], uncommitted, notes },
    }

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

/** Empty: the agent has deleted it. Anything else that keeps it from being read is not to be taken for that. */
async function findHead({ gitDir, branch }: Worktree): Promise<string> {
  const found = await runGit({ gitDir }, ['rev-parse', '--verify', '--quiet', `refs/heads/${branch}`], LISTS)
  if (found.ok) return found.out.trim()
  return found.code === 1 && found.err === ''
    ? ''
    : refuse('unreadable', branch, `is a branch that git cannot read: ${found.err}`)
}

interface OnBranch extends Pick<BranchSummary, 'commits' | 'files'> {
  readonly changes: string | undefined
}

const NOTHING: OnBranch = { commits: [], files: [], changes: undefined }

/** Of a branch that is there. That git cannot tell its commits is not to say that it has none. */
async function readBranch({ gitDir, base, branch }: Worktree, notes: string[]): Promise<OnBranch> {
  const place = { gitDir }
  const range = `${base}..refs/heads/${branch}`
  const format = '--format=%H%x1f%an%x1f%aI%x1f%s'
  const log = await runGit(place, ['log', `--max-count=${MOST_COMMITS}`, '-z', format, range], LISTS)
  if (!log.ok) {
    return refuse('unreadable', branch, `is a branch whose commits git cannot tell: ${log.err || log.code}`)
  }
  const numbers = await runGit(place, ['diff', '--numstat', '-z', ...PLAIN_DIFF, range], LISTS)
  if (!numbers.ok) notes.push(`The list of changed files is left out: ${numbers.err || 'git refused'}`)
  return {
    commits: parseCommits(log.out),
    files: numbers.ok ? parseNumbers(numbers.out) : [],
    changes: await diff(place, [range], 'changes.diff', notes),
  }
}

function elsewhereNote({ branch: own }: Worktree, { branch, commits }: CommitsElsewhere): string {
  const where = branch === null ? 'a detached HEAD' : `the branch ${showName(branch)}`
  return `Not on ${own}, and so not in changes.diff: ${commits.length} commits on ${where}: ${nameCommits(commits)}`
}

function hiddenNote(hidden: readonly string[]): string {
  return `Hidden from git by a flag, and so not in uncommitted.diff: ${nameFiles(hidden)}`
}

/** What is in no commit. A worktree that is gone leaves the commits of it as good as they are. */
async function lookInside(worktree: Worktree, hasCommits: boolean, notes: string[]) {
  const looked = await inWorktree(worktree, async (own) => {
    const loose = await diff(own, ['HEAD'], 'uncommitted.diff', notes)
    const files = await attempt('worktree', () => listFiles(own))
    if (!files.ok) {
      notes.push(...files.problems.map(({ message }) => message))
      return { loose, uncommitted: [] }
    }
    const { uncommitted, hidden } = files.value
    if (hidden.length > 0) notes.push(hiddenNote(hidden))
    return { loose, uncommitted: [...uncommitted, ...hidden] }
  })
  if (looked.ok) return looked.value
  const found = looked.problems[0]!
  if (found.code !== 'missing') throw new ProblemError(found)
  if (!hasCommits) throw new ProblemError({ ...found, message: `${found.message}; it committed nothing` })
  notes.push(`${found.message}; what it committed is still there`)
  return { loose: undefined, uncommitted: [] }
}

const path = ({ path: worktree }: Worktree) => worktree.slice(0, worktree.lastIndexOf('/'))

async function diff(
  place: GitPlace,
  args: readonly string[],
  name: string,
  notes: string[],
): Promise<string | undefined> {
  const ran = await runGit(place, ['diff', '--binary', ...PLAIN_DIFF, ...args], DIFF)
  if (ran.ok) return ran.out
  notes.push(`${name} is left out: ${ran.err || 'git refused'}`)
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
