import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { failed, type Outcome, type Problem, problem } from '../problem.ts'
import { openDirectory, openFolder } from '../safe-fs/directory.ts'
import { showName } from '../safe-fs/entry-name.ts'
import { startPace } from '../safe-fs/pace.ts'
import { readSmall } from '../safe-fs/read-file.ts'
import { removeTree } from '../safe-fs/remove-tree.ts'
import { removeFolder } from '../workspaces.ts'
import { type GitPlace, runGit } from './git.ts'
import { type FoundWorktree, ownPlace, WORKTREE, type Worktree } from './open-worktree.ts'
import { countUnmerged } from './unsaved-work.ts'

export interface WorktreeWanted {
  readonly workspace: string
  /** Any folder of the user's repository. */
  readonly repository: string
  readonly branch: string
  /** A branch or commit; HEAD when not given. */
  readonly from?: string
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
export async function addWorktree(wanted: WorktreeWanted): Promise<Outcome<Worktree>> {
  const { repository, branch, from = 'HEAD' } = wanted
  const refuse = (why: string) => failed(problem('invalid', repository, why))
  const found = await findGitDir(repository)
  if (!found.ok) return found
  const gitDir = found.value
  if (gitDir === undefined) return refuse('is not in a git repository')
  const place = { gitDir }
  const named = await runGit(place, ['check-ref-format', '--branch', branch], SMALL)
  if (!named.ok || branch.startsWith('-')) return refuse(`cannot have a branch called ${branch}`)
  const base = await commitAt(place, from)
  if (base === undefined) return refuse(`has no commit ${from}`)
  const path = join(realpathSync(wanted.workspace), WORKTREE)
  const made = recordOf(gitDir, path)
  if (made !== undefined && isWhole(made, path)) {
    const head = await runGit({ gitDir: made }, ['symbolic-ref', '--quiet', 'HEAD'], SMALL)
    if (!head.ok || head.out.trim() !== `refs/heads/${branch}`) {
      return refuse(`has a worktree at ${path} already, which is not on ${branch}`)
    }
    const begun = await beginningOf(place, branch, base)
    return { ok: true, value: { gitDir, ownDir: made, path, branch, base: begun } }
  }
  if (made !== undefined || isHollow(path)) await removeFolder(path)
  if (made !== undefined) await forgetWorktree(gitDir, { ownDir: made, path })
  // An earlier call created a branch without commits of its own before it could fill the worktree.
  const isLeft = (await countUnmerged({ gitDir, branch })) === 0
  const what = isLeft ? [path, branch] : ['-b', branch, path, base]
  const { variables = {} } = wanted
  const added = await runGit({ ...place, variables }, ['worktree', 'add', '--quiet', ...what], SMALL)
  if (!added.ok) return refuse(`gave no worktree: ${added.err}`)
  const own = await runGit(
    { gitDir: join(path, '.git'), workTree: path },
    ['rev-parse', '--absolute-git-dir'],
    SMALL,
  )
  if (!own.ok) return refuse(`gave no worktree: ${own.err}`)
  const begun = isLeft ? await beginningOf(place, branch, base) : base
  return { ok: true, value: { gitDir, ownDir: own.out.trim(), path, branch, base: begun } }
}

/** Git creates the folder and its pointer first: a folder with nothing else holds no work. */
function isHollow(path: string): boolean {
  return existsSync(path) && readdirSync(path).every((name) => name === '.git')
}

async function beginningOf(place: GitPlace, branch: string, from: string): Promise<string> {
  const found = await runGit(place, ['merge-base', `refs/heads/${branch}`, from], SMALL)
  return found.ok ? found.out.trim() : from
}

/** Undefined: there is no repository. Fails if git cannot tell. */
export async function findGitDir(folder: string): Promise<Outcome<string | undefined>> {
  // Git may search by itself here: the folder belongs to the user, and no agent has written to it yet.
  const found = await runGit({ workTree: folder }, ['rev-parse', '--git-common-dir'], SMALL)
  if (found.ok) return { ok: true, value: realpathSync(resolve(folder, found.out.trim())) }
  if (/not a git repository/.test(found.err)) return { ok: true, value: undefined }
  return failed(problem('invalid', folder, `is in a repository that git cannot use: ${found.err}`))
}

async function commitAt(place: GitPlace, revision: string): Promise<string | undefined> {
  const args = ['rev-parse', '--verify', '--quiet', '--end-of-options', `${revision}^{commit}`]
  const found = await runGit(place, args, SMALL)
  return found.ok ? found.out.trim() : undefined
}

/**
 * Removes the repository's record of a worktree whose folder is gone. Its branch stays unless all of its commits are on another
 * one, so no commit on it is lost; so does a branch of the user's that the agent checked out.
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

export interface WorktreeLookup {
  readonly worktree?: FoundWorktree
  /** Worktrees in the workspace that cannot be checked, each with the reason. */
  readonly unseen: readonly Problem[]
}

/**
 * Looks up the worktree of a workspace in the repository around it, which belongs to the user: an agent could change what the
 * worktree says of itself. Finds a deleted one as well, because its commits can still be there.
 */
export async function findWorktree(workspace: string): Promise<WorktreeLookup> {
  const folder = realpathSync(workspace)
  const path = join(folder, WORKTREE)
  const isThere = lstatSync(path, { throwIfNoEntry: false }) !== undefined
  const around = await findGitDir(dirname(folder)).catch((error: unknown) => {
    // Without git there never was a worktree.
    if (isThere) throw error
    return { ok: true as const, value: undefined }
  })
  if (!around.ok) return { unseen: around.problems }
  const gitDir = around.value
  const records = gitDir === undefined ? undefined : recordsBelow(gitDir, folder)
  if (records?.ok === false) return { unseen: records.problems }
  const found = records?.value ?? []
  const own = found.find((record) => record.path === path)
  const unseen = found
    .filter((record) => record !== own)
    .map((record) => showName(relative(folder, record.path) || '.'))
    .map((name) => problem('invalid', name, 'is a git worktree that the agent added or moved'))
  if (own === undefined) {
    return {
      unseen: isThere
        ? [...unseen, problem('invalid', WORKTREE, 'belongs to no repository around it')]
        : unseen,
    }
  }
  const place = { gitDir: gitDir!, ...own }
  const head = await runGit(ownPlace(place), ['symbolic-ref', '--quiet', 'HEAD'], SMALL)
  const branch = head.ok ? head.out.trim().replace(/^refs\/heads\//, '') : undefined
  return { worktree: { ...place, branch }, unseen }
}

const MOST_BYTES = 64 * 1024
const RECORDS = 'worktrees'
const POINTER = 'gitdir'

export interface WorktreeRecord {
  /** Folder of the repository's record of the worktree. */
  readonly ownDir: string
  readonly path: string
}

/** Finds the repository's record of the worktree at this path. */
export function recordOf(gitDir: string, path: string): string | undefined {
  return recordsIn(gitDir).find((ownDir) => pathIn(ownDir) === path)
}

/** Finds the records of all worktrees in a folder, or at it: an agent can move its own, and add others. */
export function recordsBelow(gitDir: string, folder: string): Outcome<WorktreeRecord[]> {
  const records = join(gitDir, RECORDS)
  const found = lstatSync(records, { throwIfNoEntry: false })
  if (found !== undefined && !found.isDirectory()) {
    return failed(problem('not_a_folder', records, 'is no folder of git any more'))
  }
  const value = recordsIn(gitDir).flatMap((ownDir) => {
    const path = pathIn(ownDir)
    return path === folder || path?.startsWith(`${folder}/`) ? [{ ownDir, path }] : []
  })
  return { ok: true, value }
}

/**
 * Removes what the repository knows of a worktree, if that is still the one at this path. Git would look at the records of all
 * others for it, in which an agent can have put anything; and whoever put a link on the way leads nobody elsewhere.
 */
export async function forgetWorktree(gitDir: string, { ownDir, path }: WorktreeRecord): Promise<void> {
  const repository = openDirectory(gitDir)
  const records = openFolder(repository, RECORDS)
  repository.close()
  if (!records.ok) return
  const name = basename(ownDir)
  const record = openFolder(records.value, name)
  try {
    if (!record.ok) return
    const read = readSmall(record.value, POINTER, MOST_BYTES)
    // A record without a readable pointer cannot belong to another worktree.
    if (read.ok && pathOf(ownDir, read.value.toString()) !== path) return
    await removeTree(records.value, name, startPace())
  } finally {
    if (record.ok) record.value.close()
    records.value.close()
  }
}

/** Git has made it and filled it. While it does, it holds a lock of its own on it, which a crash leaves behind. */
export function isWhole(record: string, path: string): boolean {
  return existsSync(join(path, '.git')) && textIn(join(record, 'locked')) !== 'initializing'
}

/** Folders only: an agent can write there, and a link could lead anywhere. */
function recordsIn(gitDir: string): string[] {
  const folder = join(gitDir, RECORDS)
  if (!lstatSync(folder, { throwIfNoEntry: false })?.isDirectory()) return []
  const entries = readdirSync(folder, { withFileTypes: true })
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(folder, name))
}

/** Newer versions of git can be told to write it relative to the record. */
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
  // A pipe would hold us up.
  return found?.isFile() && found.size < MOST_BYTES ? readFileSync(file, 'utf8').trim() : undefined
}
