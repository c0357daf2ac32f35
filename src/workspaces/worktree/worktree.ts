import { existsSync, lstatSync, readdirSync, realpathSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { removeFolder } from '../folder.ts'
import { failed, type Outcome, type Problem, problem } from '../problem.ts'
import { showName } from '../safe-fs/entry-name.ts'
import { type FoundWorktree, ownPlace, WORKTREE, type Worktree } from './folder.ts'
import { type GitPlace, runGit } from './git.ts'
import { forgetWorktree, isWhole, recordOf, recordsBelow } from './record.ts'
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
