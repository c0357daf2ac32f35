import { attempt, type Outcome, ProblemError, refuse } from '../problem.ts'
import { openPart } from '../safe-fs/directory.ts'
import { showName } from '../safe-fs/entry-name.ts'
import { makeFolder, replaceFile } from '../safe-fs/write-file.ts'
import { type GitPlace, IGNORE_DIRTY, runGit } from './git.ts'
import { inWorktree, ownPlace, type Worktree } from './open-worktree.ts'
import { type CommitName, listCommits, listFiles, nameCommits } from './unsaved-work.ts'

export interface Commit {
  readonly hash: string
  readonly author: string
  readonly time: string
  readonly subject: string
}

/** Commits of an agent that are not on the branch it was given. */
export interface CommitsElsewhere {
  /** Null: on a detached HEAD. */
  readonly branch: string | null
  readonly commits: readonly CommitName[]
}

/** The content of outbox/git/branch.json. */
export interface BranchSummary {
  readonly branch: string
  readonly base: string
  readonly head: string
  readonly commits: readonly Commit[]
  readonly files: readonly { readonly path: string; readonly added: number; readonly deleted: number }[]
  /** Commits of the worktree's HEAD if it is on another branch or on none: in none of the above, and in no diff. */
  readonly elsewhere: readonly CommitsElsewhere[]
  /** Files that are in no commit. */
  readonly uncommitted: readonly string[]
  /** Why a diff is missing, and anything else that is unexpected. */
  readonly notes: readonly string[]
}

const LISTS = 16 * 1024 * 1024
const DIFF = 10 * 1024 * 1024
const MOST_COMMITS = 1000
const PLAIN_DIFF = ['--no-ext-diff', '--no-textconv', '--no-color', '--no-renames', IGNORE_DIRTY]

/** Writes the commits, the diff and the state of the branch to outbox/git/. Merges nothing. */
export function summarizeBranch(worktree: Worktree): Promise<Outcome<BranchSummary>> {
  return attempt('outbox/git', async () => {
    const notes: string[] = []
    const head = await findHead(worktree)
    if (head === '') notes.push(`The agent has deleted its branch ${worktree.branch}.`)
    const { commits, files, changes } = head === '' ? NOTHING : await readBranch(worktree, notes)
    const elsewhere = await findElsewhere(worktree)
    const hasCommits = commits.length > 0 || elsewhere?.length !== 0
    const { loose, uncommitted } = await lookInside(worktree, hasCommits, notes)
    if (elsewhere === undefined)
      notes.push('Git cannot tell whether HEAD has commits that are not on the branch.')
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

/** Empty: the agent deleted the branch. Fails if git cannot read it. */
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

/** Fails if git cannot list the commits: that does not mean that there are none. */
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

/** Undefined: git cannot tell. */
async function findElsewhere(worktree: Worktree): Promise<CommitsElsewhere[] | undefined> {
  const place = ownPlace(worktree)
  const own = `refs/heads/${worktree.branch}`
  const head = await runGit(place, ['symbolic-ref', '--quiet', 'HEAD'], LISTS)
  const at = head.ok ? head.out.trim() : null
  if (at === own) return []
  const commits = await listCommits(place, ['HEAD', `^${worktree.base}`, `^${own}`])
  if (commits === undefined || commits.length === 0) return commits && []
  return [{ branch: at === null ? null : at.replace(/^refs\/heads\//, ''), commits }]
}

/** Files that are in no commit. If the worktree is gone, its commits still count. */
async function lookInside(worktree: Worktree, hasCommits: boolean, notes: string[]) {
  const looked = await inWorktree(worktree, async (own) => {
    const loose = await diff(own, ['HEAD'], 'uncommitted.diff', notes)
    const files = await attempt('worktree', () => listFiles(own))
    if (!files.ok) {
      notes.push(...files.problems.map(({ message }) => message))
      return { loose, uncommitted: [] }
    }
    return { loose, uncommitted: files.value.uncommitted }
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
