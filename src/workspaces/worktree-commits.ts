import { lstatSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { showName } from './entry-name.ts'
import { type GitPlace, runGit } from './git.ts'
import { type FoundWorktree, ownPlace, type Worktree } from './worktree-folder.ts'

export interface CommitName {
  readonly hash: string
  readonly subject: string
}

/** Commits of an agent that are not on the branch it was given. */
export interface CommitsElsewhere {
  /** Null: they were made on a detached HEAD. */
  readonly branch: string | null
  readonly commits: readonly CommitName[]
}

const LISTS = 16 * 1024 * 1024
const MOST_SHOWN = 5

/** Those that revisions lead to, and none that one with `^` leads to. What is named and not there is passed over. */
export async function listCommits(
  place: GitPlace,
  revisions: readonly string[],
  options: readonly string[] = [],
): Promise<CommitName[] | undefined> {
  const found = await listReached(place, revisions, options)
  return found?.map(({ hash, subject }) => ({ hash, subject }))
}

/** Each with the revision, of those that were named, that leads to it. Undefined: git cannot tell. */
async function listReached(
  place: GitPlace,
  revisions: readonly string[],
  options: readonly string[] = [],
): Promise<(CommitName & { from: string })[] | undefined> {
  // Without one, git would take HEAD.
  if (revisions.every((revision) => revision.startsWith('^'))) return []
  const args = ['log', '--ignore-missing', '--stdin', '-z', '--format=%H%x1f%S%x1f%s', ...options, '--']
  // An agent chose how many there are and how long they are, and what a program is called with has a limit.
  const ran = await runGit(place, args, LISTS, revisions.map((revision) => `${revision}\n`).join(''))
  if (!ran.ok) return undefined
  return recordsOf(ran.out).map(([hash = '', from = '', subject = '']) => ({ hash, from, subject }))
}

/** For people, in one line. */
export function nameCommits(commits: readonly CommitName[]): string {
  const shown = commits
    .slice(0, MOST_SHOWN)
    .map(({ hash, subject }) => `${hash.slice(0, 12)} ${showName(subject)}`.trimEnd())
  const more = commits.length - shown.length
  return shown.join(', ') + (more > 0 ? ` and ${more} more` : '')
}

export interface Journey {
  /** Where its HEAD was when it went elsewhere by a checkout: from no branch, or from one that may be gone since. */
  readonly left: readonly string[]
  /** Branches that it was on and left. */
  readonly branches: readonly string[]
  /** What HEAD came to by other ways than a checkout or a reset: commits that were made here. */
  readonly made: ReadonlySet<string>
}

/** Where the HEAD of a worktree has been, by git's own log of it: all of it. Undefined: git cannot tell, or it is too long. */
export async function readJourney(worktree: FoundWorktree): Promise<Journey | undefined> {
  const args = ['log', '-g', '-z', '--format=%H%x1f%gs', 'HEAD', '--']
  const ran = await runGit(ownPlace(worktree), args, LISTS)
  const steps = ran.ok ? recordsOf(ran.out) : stepsIn(join(worktree.ownDir, 'logs', 'HEAD'))
  if (steps === undefined) return undefined
  const isHash = (from: string) => /^[0-9a-f]{40,64}$/.test(from)
  // The newest is first, and each tells where it led: so the one below it says from where.
  const departures = steps.flatMap(([, what = ''], index) => {
    const from = /^checkout: moving from (\S+) to /.exec(what)?.[1]
    return from === undefined ? [] : [{ from, hash: isHash(from) ? from : steps[index + 1]?.[0] }]
  })
  const made = steps.filter(([, what = '']) => !/^(?:checkout|reset):/.test(what))
  return {
    left: [...new Set(departures.flatMap(({ hash }) => hash ?? []))],
    branches: [...new Set(departures.map(({ from }) => from).filter((from) => !isHash(from)))],
    made: new Set(made.map(([hash = '']) => hash)),
  }
}

/** On another branch or on a detached HEAD, whether it is still there or went back since. Undefined: git cannot tell. */
export async function findElsewhere(worktree: Worktree): Promise<CommitsElsewhere[] | undefined> {
  const place = ownPlace(worktree)
  const head = await runGit(place, ['symbolic-ref', '--quiet', 'HEAD'], LISTS)
  const own = `refs/heads/${worktree.branch}`
  const at = head.ok ? head.out.trim() : null
  const journey = await readJourney(worktree)
  if (journey === undefined) return undefined
  const branches = journey.branches
    .map((name) => `refs/heads/${name}`)
    .filter((ref) => ref !== own && ref !== at)
  const known = [`^${worktree.base}`, `^${own}`]
  const current = at === own ? [] : await listCommits(place, ['HEAD', ...known])
  if (at !== own) known.push('^HEAD')
  const onBranches = await listReached(place, [...branches, ...known])
  known.push(...branches.map((branch) => `^${branch}`))
  const left = await listCommits(place, [...journey.left, ...known])
  if (current === undefined || onBranches === undefined || left === undefined) return undefined
  // A place that it only looked at holds the work of others.
  const isMade = ({ hash }: CommitName) => journey.made.has(hash)
  const byBranch = Map.groupBy(onBranches.filter(isMade), ({ from }) => from)
  return [
    { branch: at === null ? null : shortName(at), commits: current },
    ...[...byBranch].map(([ref, commits]) => ({
      branch: shortName(ref),
      commits: commits.map(({ hash, subject }) => ({ hash, subject })),
    })),
    { branch: null, commits: left.filter(isMade) },
  ].filter(({ commits }) => commits.length > 0)
}

const shortName = (ref: string) => ref.replace(/^refs\/heads\//, '')

/** As git writes it: it does not read it itself where there is no commit yet. Git keeps none where it is told so. */
function stepsIn(file: string): string[][] | undefined {
  const found = lstatSync(file, { throwIfNoEntry: false })
  if (found === undefined) return []
  if (!found.isFile() || found.size > LISTS) return undefined
  const lines = readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
  return lines.map((line) => [line.split(' ')[1] ?? '', line.slice(line.indexOf('\t') + 1)]).reverse()
}

function recordsOf(out: string): string[][] {
  return out
    .split('\0')
    .filter((record) => record !== '')
    .map((record) => record.split('\x1f'))
}
