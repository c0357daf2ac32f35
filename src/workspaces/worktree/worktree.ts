import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import {
  attempt,
  failed,
  ProblemError,
  problem,
  refuse,
  type WorkspaceProblem,
  type WorkspaceResult,
} from '../problem.ts'
import { openDirectory, openFolder, openPart, showName } from '../safe-fs/directory.ts'
import { makeFolder, readSmall, replaceFile } from '../safe-fs/files.ts'
import { removeFolder, removeTree } from '../safe-fs/remove-tree.ts'
import {
  type FoundWorktree,
  type GitLocation,
  gitLocationOf,
  IGNORE_DIRTY,
  inWorktree,
  runGit,
  WORKTREE,
  type Worktree,
} from './git.ts'
import { type CommitName, countUnmerged, listCommits, listFiles, nameCommits } from './unsaved-work.ts'

export type { Worktree }

interface WorktreeWanted {
  readonly workspace: string
  /** Any folder of the user's repository. */
  readonly repository: string
  readonly branch: string
  /** Environment variables for git, by which a process that outlives a crash of Orchub is found and ended. */
  readonly variables?: Readonly<Record<string, string>>
}

const SMALL = 1024 * 1024
/** Prefix of the branches that Orchub creates for agents. */
const OWN_BRANCHES = 'orc/'

/**
 * Adds a worktree on a new branch in the agent's folder. The user's own branch and files stay untouched. Idempotent: returns
 * what an earlier call completed, and replaces what it left incomplete.
 */
export async function addWorktree(wanted: WorktreeWanted): Promise<WorkspaceResult<Worktree>> {
  const { repository, branch } = wanted
  const refuse = (why: string) => failed(problem('invalid', repository, why))
  const found = await findGitDir(repository)
  if (!found.ok) return found
  const gitDir = found.value
  if (gitDir === undefined) return refuse('is not in a git repository')
  const location = { gitDir }
  const named = await runGit(location, ['check-ref-format', '--branch', branch], SMALL)
  if (!named.ok || branch.startsWith('-')) return refuse(`cannot have a branch called ${branch}`)
  const commit = await runGit(location, ['rev-parse', '--verify', '--quiet', 'HEAD^{commit}'], SMALL)
  if (!commit.ok) return refuse('has no commit yet')
  const base = commit.value.trim()
  const path = join(realpathSync(wanted.workspace), WORKTREE)
  const made = recordOf(gitDir, path)
  if (made !== undefined && isWhole(made, path)) {
    const head = await runGit({ gitDir: made }, ['symbolic-ref', '--quiet', 'HEAD'], SMALL)
    if (!head.ok || head.value.trim() !== `refs/heads/${branch}`) {
      return refuse(`already has a worktree at ${path}, which is not on ${branch}`)
    }
    const begun = await beginningOf(location, branch, base)
    return { ok: true, value: { gitDir, ownDir: made, path, branch, base: begun } }
  }
  if (made !== undefined || isHollow(path)) await removeFolder(path)
  if (made !== undefined) await forgetWorktree(gitDir, { ownDir: made, path })
  // An earlier call created a branch without commits of its own before it could fill the worktree.
  const isLeft = (await countUnmerged({ gitDir, branch })) === 0
  const what = isLeft ? [path, branch] : ['-b', branch, path, base]
  const { variables = {} } = wanted
  const added = await runGit({ ...location, variables }, ['worktree', 'add', '--quiet', ...what], SMALL)
  if (!added.ok) return refuse(`could not create a worktree: ${added.error.message}`)
  const ownDir = recordOf(gitDir, path)
  if (ownDir === undefined) return refuse('could not create a worktree: git has no record of it')
  const begun = isLeft ? await beginningOf(location, branch, base) : base
  return { ok: true, value: { gitDir, ownDir, path, branch, base: begun } }
}

/** Git creates the folder and its pointer first: a folder with nothing else holds no work. */
function isHollow(path: string): boolean {
  return existsSync(path) && readdirSync(path).every((name) => name === '.git')
}

async function beginningOf(location: GitLocation, branch: string, from: string): Promise<string> {
  const found = await runGit(location, ['merge-base', `refs/heads/${branch}`, from], SMALL)
  return found.ok ? found.value.trim() : from
}

/** Undefined: there is no repository. Fails if git cannot tell. */
async function findGitDir(folder: string): Promise<WorkspaceResult<string | undefined>> {
  // Git may search by itself here: the folder belongs to the user, and no agent has written to it yet.
  const found = await runGit({ workTree: folder }, ['rev-parse', '--git-common-dir'], SMALL)
  if (found.ok) return { ok: true, value: realpathSync(resolve(folder, found.value.trim())) }
  if (/not a git repository/.test(found.error.message)) return { ok: true, value: undefined }
  return failed(problem('invalid', folder, `is in a repository that git cannot use: ${found.error.message}`))
}

/**
 * Removes the repository's record of a worktree whose folder is gone. Its branch stays unless all of its commits are on another
 * one, so no commit is lost. A branch of the user that the agent checked out stays as well.
 */
export async function releaseWorktree(worktree: FoundWorktree): Promise<{ branchKept: boolean }> {
  const { gitDir, branch } = worktree
  const unmerged = branch === undefined ? undefined : await countUnmerged({ gitDir, branch })
  await forgetWorktree(gitDir, worktree)
  if (branch === undefined || unmerged !== 0) return { branchKept: unmerged !== undefined }
  if (!branch.startsWith(OWN_BRANCHES)) return { branchKept: false }
  const deleted = await runGit({ gitDir }, ['branch', '--quiet', '-D', '--', branch], SMALL)
  return { branchKept: !deleted.ok }
}

interface WorktreeLookup {
  readonly worktree?: FoundWorktree
  /** Worktrees in the workspace that cannot be checked, each with the reason. */
  readonly unseen: readonly WorkspaceProblem[]
}

/**
 * Looks up the worktree of a workspace in the surrounding repository, which belongs to the user: an agent could change the
 * worktree's own files. Finds a deleted one too, because its commits may still exist.
 */
export async function findWorktree(workspace: string): Promise<WorktreeLookup> {
  const folder = realpathSync(workspace)
  const path = join(folder, WORKTREE)
  const isThere = lstatSync(path, { throwIfNoEntry: false }) !== undefined
  const around = await findGitDir(dirname(folder)).catch((error: unknown) => {
    // Without git, no worktree can have been created.
    if (isThere) throw error
    return { ok: true as const, value: undefined }
  })
  if (!around.ok) return { unseen: around.error }
  const gitDir = around.value
  const records = gitDir === undefined ? undefined : recordsBelow(gitDir, folder)
  if (records?.ok === false) return { unseen: records.error }
  const found = records?.value ?? []
  const own = found.find((record) => record.path === path)
  const unseen = found
    .filter((record) => record !== own)
    .map((record) => showName(relative(folder, record.path) || '.'))
    .map((name) => problem('invalid', name, 'is a git worktree that the agent added or moved'))
  if (own === undefined) {
    return {
      unseen: isThere
        ? [...unseen, problem('invalid', WORKTREE, 'does not belong to the repository around it')]
        : unseen,
    }
  }
  const location = { gitDir: gitDir!, ...own }
  const head = await runGit(gitLocationOf(location), ['symbolic-ref', '--quiet', 'HEAD'], SMALL)
  const branch = head.ok ? head.value.trim().replace(/^refs\/heads\//, '') : undefined
  return { worktree: { ...location, branch }, unseen }
}

const MAX_BYTES = 64 * 1024
const RECORDS = 'worktrees'
const POINTER = 'gitdir'

interface WorktreeRecord {
  /** Folder of the repository's record of the worktree. */
  readonly ownDir: string
  readonly path: string
}

/** Finds the repository's record of the worktree at this path. */
function recordOf(gitDir: string, path: string): string | undefined {
  return recordsIn(gitDir).find((ownDir) => pathIn(ownDir) === path)
}

/** Finds the records of all worktrees in a folder, or at it: an agent can move its own, and add others. */
function recordsBelow(gitDir: string, folder: string): WorkspaceResult<WorktreeRecord[]> {
  const records = join(gitDir, RECORDS)
  const found = lstatSync(records, { throwIfNoEntry: false })
  if (found !== undefined && !found.isDirectory()) {
    return failed(problem('not_a_folder', records, 'is no longer a folder of git'))
  }
  const value = recordsIn(gitDir).flatMap((ownDir) => {
    const path = pathIn(ownDir)
    return path === folder || path?.startsWith(`${folder}/`) ? [{ ownDir, path }] : []
  })
  return { ok: true, value }
}

/**
 * Removes the repository's record of a worktree if it still belongs to this path. `git worktree remove` would read the records
 * of all worktrees, which agents can change. It follows no links along the path.
 */
async function forgetWorktree(gitDir: string, { ownDir, path }: WorktreeRecord): Promise<void> {
  const repository = openDirectory(gitDir)
  const records = openFolder(repository, RECORDS)
  repository.close()
  if (!records.ok) return
  const name = basename(ownDir)
  const record = openFolder(records.value, name)
  try {
    if (!record.ok) return
    const read = readSmall(record.value, POINTER, MAX_BYTES)
    // A record without a readable pointer cannot belong to another worktree.
    if (read.ok && pathOf(ownDir, read.value.toString()) !== path) return
    await removeTree(records.value, name)
  } finally {
    if (record.ok) record.value.close()
    records.value.close()
  }
}

/** Whether git has finished creating it. Git locks it meanwhile, and a crash leaves the lock behind. */
function isWhole(record: string, path: string): boolean {
  return existsSync(join(path, '.git')) && textIn(join(record, 'locked')) !== 'initializing'
}

/** Folders only: an agent can write there, and a link could lead anywhere. */
function recordsIn(gitDir: string): string[] {
  const folder = join(gitDir, RECORDS)
  if (!lstatSync(folder, { throwIfNoEntry: false })?.isDirectory()) return []
  const entries = readdirSync(folder, { withFileTypes: true })
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(folder, name))
}

/** Newer versions of git can store a path relative to the record. */
function pathIn(ownDir: string): string | undefined {
  const text = textIn(join(ownDir, POINTER))
  return text === undefined ? undefined : pathOf(ownDir, text)
}

function pathOf(ownDir: string, text: string): string | undefined {
  const pointer = resolve(ownDir, text.trim())
  return basename(pointer) === '.git' ? dirname(pointer) : undefined
}

function textIn(file: string): string | undefined {
  const found = lstatSync(file, { throwIfNoEntry: false })
  // Reading a pipe would block.
  return found?.isFile() && found.size < MAX_BYTES ? readFileSync(file, 'utf8').trim() : undefined
}

interface AgentCommit {
  readonly hash: string
  readonly author: string
  readonly time: string
  readonly subject: string
}

/** Commits of an agent that are not on the branch it was given. */
interface CommitsElsewhere {
  /** Null: on a detached HEAD. */
  readonly branch: string | null
  readonly commits: readonly CommitName[]
}

/** The content of outbox/git/branch.json. */
interface BranchSummary {
  readonly branch: string
  readonly base: string
  readonly head: string
  readonly commits: readonly AgentCommit[]
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
const MAX_COMMITS = 1000
const PLAIN_DIFF = ['--no-ext-diff', '--no-textconv', '--no-color', '--no-renames', IGNORE_DIRTY]

/** Writes the commits, the diff and the state of the branch to outbox/git/. Merges nothing. */
export function summarizeBranch(worktree: Worktree): Promise<WorkspaceResult<BranchSummary>> {
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

    using outbox = openPart(dirname(worktree.path), 'outbox')
    using folder = makeFolder(outbox, 'git')
    replaceFile(folder, 'branch.json', `${JSON.stringify(summary, null, 2)}\n`, 0o644)
    if (changes !== undefined) replaceFile(folder, 'changes.diff', changes, 0o644)
    if (loose) replaceFile(folder, 'uncommitted.diff', loose, 0o644)
    return summary
  })
}

/** Empty: the agent deleted the branch. Fails if git cannot read it. */
async function findHead({ gitDir, branch }: Worktree): Promise<string> {
  const found = await runGit({ gitDir }, ['rev-parse', '--verify', '--quiet', `refs/heads/${branch}`], LISTS)
  if (found.ok) return found.value.trim()
  return found.error.code === 1 && found.error.message === ''
    ? ''
    : refuse('unreadable', branch, `cannot be read by git: ${found.error.message}`)
}

interface OnBranch extends Pick<BranchSummary, 'commits' | 'files'> {
  readonly changes: string | undefined
}

const NOTHING: OnBranch = { commits: [], files: [], changes: undefined }

/** Fails if git cannot list the commits: that does not mean that there are none. */
async function readBranch({ gitDir, base, branch }: Worktree, notes: string[]): Promise<OnBranch> {
  const location = { gitDir }
  const range = `${base}..refs/heads/${branch}`
  const format = '--format=%H%x1f%an%x1f%aI%x1f%s'
  const log = await runGit(location, ['log', `--max-count=${MAX_COMMITS}`, '-z', format, range], LISTS)
  if (!log.ok) {
    return refuse(
      'unreadable',
      branch,
      `has commits that git cannot list: ${log.error.message || log.error.code}`,
    )
  }
  const numbers = await runGit(location, ['diff', '--numstat', '-z', ...PLAIN_DIFF, range], LISTS)
  if (!numbers.ok)
    notes.push(`The list of changed files is left out: ${numbers.error.message || 'git refused'}`)
  return {
    commits: parseCommits(log.value),
    files: numbers.ok ? parseNumbers(numbers.value) : [],
    changes: await diff(location, [range], 'changes.diff', notes),
  }
}

function elsewhereNote({ branch: own }: Worktree, { branch, commits }: CommitsElsewhere): string {
  const where = branch === null ? 'a detached HEAD' : `the branch ${showName(branch)}`
  return `Not on ${own}, and so not in changes.diff: commits on ${where}: ${nameCommits(commits)}`
}

/** Undefined: git cannot tell. */
async function findElsewhere(worktree: Worktree): Promise<CommitsElsewhere[] | undefined> {
  const location = gitLocationOf(worktree)
  const own = `refs/heads/${worktree.branch}`
  const head = await runGit(location, ['symbolic-ref', '--quiet', 'HEAD'], LISTS)
  const at = head.ok ? head.value.trim() : null
  if (at === own) return []
  const commits = await listCommits(location, ['HEAD', `^${worktree.base}`, `^${own}`])
  if (commits === undefined || commits.length === 0) return commits && []
  return [{ branch: at === null ? null : at.replace(/^refs\/heads\//, ''), commits }]
}

/** Files that are in no commit. If the worktree is gone, its commits still count. */
async function lookInside(worktree: Worktree, hasCommits: boolean, notes: string[]) {
  const looked = await inWorktree(worktree, async (own) => {
    const loose = await diff(own, ['HEAD'], 'uncommitted.diff', notes)
    const files = await attempt('worktree', () => listFiles(own))
    if (!files.ok) {
      notes.push(...files.error.map(({ message }) => message))
      return { loose, uncommitted: [] }
    }
    return { loose, uncommitted: files.value.uncommitted }
  })
  if (looked.ok) return looked.value
  const found = looked.error[0]!
  if (found.code !== 'missing') throw new ProblemError(found)
  if (!hasCommits) throw new ProblemError({ ...found, message: `${found.message}; it committed nothing` })
  notes.push(`${found.message}; what it committed is still there`)
  return { loose: undefined, uncommitted: [] }
}

async function diff(
  location: GitLocation,
  args: readonly string[],
  name: string,
  notes: string[],
): Promise<string | undefined> {
  const ran = await runGit(location, ['diff', '--binary', ...PLAIN_DIFF, ...args], DIFF)
  if (ran.ok) return ran.value
  notes.push(`${name} is left out: ${ran.error.message || 'git refused'}`)
  return undefined
}

function parseCommits(out: string): AgentCommit[] {
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
