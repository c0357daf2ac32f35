import { existsSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { readAttempts } from '../attempts.ts'
import { DEFAULT_LIMITS, type FileLimits } from '../limits.ts'
import { type AgentFolder, collectOutbox, copySideBySide } from '../outbox.ts'
import {
  attempt,
  errnoOf,
  failed,
  nameProblems,
  ProblemError,
  problem,
  problemOf,
  refuse,
  type WorkspaceProblem,
  type WorkspaceResult,
} from '../problem.ts'
import { type Directory, openDirectory } from '../safe-fs/directory.ts'
import { startPace } from '../safe-fs/pace.ts'
import { naming, removeFolder, removeTree } from '../safe-fs/remove-tree.ts'
import { temporaryName } from '../safe-fs/write-file.ts'
import { readStatus } from '../status.ts'
import { type FoundWorktree, WORKTREE } from '../worktree/git.ts'
import { findUnmerged } from '../worktree/unsaved-work.ts'
import { releaseWorktree } from '../worktree/worktree.ts'
import { listArchive, writeArchive } from './archive.ts'
import { type AgentRecord, formatReport, unmergedLines } from './report.ts'

export type { AgentRecord }

export interface DissolvedAgent extends AgentFolder {
  readonly worktree?: FoundWorktree | undefined
  /** Worktrees that could not be checked, each with the reason. */
  readonly unseenWorktrees?: readonly WorkspaceProblem[]
  /** State from a source that knows more than status.json. */
  readonly state?: string
  readonly isRunning: boolean
}

export interface DissolveWanted {
  readonly title: string
  readonly agents: readonly DissolvedAgent[]
  readonly limits?: FileLimits
  /** A new file for the report. */
  readonly reportFile?: string
  /** A new .tar.gz with the report and each agent's folder, without workspace/ and worktree/. */
  readonly archive?: string
  /** A new folder for the outputs: `{folder}/{agent}/…`. */
  readonly keepOutputsIn?: string
  /** Removes unsaved work as well. */
  readonly allowLoss?: boolean
  readonly signal?: AbortSignal
}

interface Dissolved {
  readonly report: string
  readonly agents: readonly AgentRecord[]
  /** Files that neither the archive nor the kept outputs hold, each with the reason. */
  readonly leftOut: readonly WorkspaceProblem[]
  /** Branches with commits that are on no other one. */
  readonly branchesKept: readonly string[]
}

/** Reads what each agent did, without changing anything: for the report, and to find unsaved work. */
export async function surveyAgents({
  agents,
  limits = DEFAULT_LIMITS,
  signal,
}: Pick<DissolveWanted, 'agents' | 'limits' | 'signal'>): Promise<AgentRecord[]> {
  return Promise.all(
    agents.map(async ({ name, workspace, worktree, unseenWorktrees = [], state }) => {
      const status = readStatus(workspace)
      const outbox = await collectOutbox(workspace, { limits, ...(signal === undefined ? {} : { signal }) })
      const attempts = await readAttempts(workspace)
      const unmerged = worktree === undefined ? undefined : await findUnmerged(worktree)
      const unseen = [
        ...unseenWorktrees,
        ...(unmerged?.ok === false ? unmerged.error : []),
        ...(unmerged?.ok && unmerged.value.unseen !== undefined ? [unmerged.value.unseen] : []),
      ]
      const problems = [
        ...(status.ok ? [] : [status.error]),
        ...[outbox, attempts].flatMap((outcome) => (outcome.ok ? [] : outcome.error)),
        ...(outbox.ok ? [outbox.value.summaryProblem ?? []].flat() : []),
        ...[outbox.ok ? outbox.value : undefined, ...(attempts.ok ? attempts.value : [])].flatMap(
          (reported) => reported?.errorReportProblem ?? [],
        ),
        ...unseen,
      ]
      return {
        name,
        state: state ?? (status.ok ? status.value.status.state : 'unknown'),
        status: status.ok ? status.value.status : undefined,
        outbox: outbox.ok ? outbox.value : undefined,
        attempts: attempts.ok ? attempts.value : [],
        unmerged: unmerged?.ok ? [unmerged.value] : [],
        unseen,
        problems,
      }
    }),
  )
}

/**
 * Writes the report, the archive and the outputs, and then removes the workspaces. Refuses while an agent runs, and before
 * unsaved work is lost. If it fails or is aborted before the removal, everything is as it was.
 */
export async function dissolve(wanted: DissolveWanted): Promise<WorkspaceResult<Dissolved>> {
  const { title, agents, allowLoss = false, signal } = wanted
  try {
    const records = await surveyAgents(wanted)
    const against = agents.flatMap((agent, index) => objections(agent, records[index]!, allowLoss))
    if (against.length > 0) return failed(...against)
    const mounts = agents.flatMap(({ workspace }) => mountsBelow(realpathSync(workspace)))
    if (mounts.length > 0) {
      return failed(
        ...mounts.map((path) =>
          problem('irremovable', path, 'cannot be removed: something is mounted there'),
        ),
      )
    }
    const report = formatReport(title, records)
    const prepared = await attempt(title, () => prepareRemoval(wanted, report))
    if (!prepared.ok) return prepared
    const { leftOut, aside } = prepared.value
    const remains = await removeAside(aside)
    const branchesKept: string[] = []
    for (const { worktree } of agents) {
      if (worktree === undefined) continue
      const { branchKept } = await releaseWorktree(worktree)
      if (branchKept && worktree.branch !== undefined) branchesKept.push(worktree.branch)
    }
    if (remains.length > 0) return failed(...remains)
    return { ok: true, value: { report, agents: records, leftOut, branchesKept } }
  } catch (error) {
    if (!signal?.aborted) throw error
    return failed(problem('called_off', title, 'was not dissolved: it was interrupted'))
  }
}

function objections(
  { name, isRunning }: DissolvedAgent,
  record: AgentRecord,
  allowLoss: boolean,
): WorkspaceProblem[] {
  if (isRunning) return [problem('invalid', name, 'is still running: stop it first')]
  if (allowLoss) return []
  // Ignored files are often large and can be generated again: the report lists them, and they stop nothing.
  const lost = record.unmerged
    .flatMap((work) => unmergedLines({ ...work, commits: 0, ignored: [] }))
    .map((line) => line.slice(2))
  const unchecked = nameProblems(record.unseen)
  return [
    ...(lost.length === 0 ? [] : [problem('invalid', name, `has unsaved work: ${lost.join('; ')}`)]),
    ...(unchecked === ''
      ? []
      : [
          problem(
            'invalid',
            name,
            `may have unsaved work in a worktree that cannot be checked: ${unchecked}`,
          ),
        ]),
  ]
}

/** Mount points inside a folder, including bind mounts of the same file system. Finds none without /proc. */
function mountsBelow(folder: string): string[] {
  let lines: string[]
  try {
    lines = readFileSync('/proc/self/mountinfo', 'latin1').split('\n')
  } catch {
    return []
  }
  const above = `${Buffer.from(folder).toString('latin1')}/`
  return lines
    .map((line) =>
      // The fifth field is the mount point; spaces and other special bytes are written in octal.
      (line.split(' ')[4] ?? '').replace(/\\(\d{3})/g, (_, digits) =>
        String.fromCharCode(Number.parseInt(digits, 8)),
      ),
    )
    .filter((path) => path.startsWith(above))
    .map((path) => Buffer.from(path, 'latin1').toString())
}

/** Writes the record and moves the workspaces aside: all of it, or nothing. */
async function prepareRemoval(wanted: DissolveWanted, report: string) {
  const made: string[] = []
  try {
    const leftOut = await writeRecord(wanted, report, made)
    wanted.signal?.throwIfAborted()
    return { leftOut, aside: moveAside(wanted.agents) }
  } catch (error) {
    for (const path of made.toReversed()) await removeFolder(path)
    throw error
  }
}

/** `made` collects the new files and folders. */
async function writeRecord(
  wanted: DissolveWanted,
  report: string,
  made: string[],
): Promise<WorkspaceProblem[]> {
  const { agents, limits = DEFAULT_LIMITS, reportFile, archive, keepOutputsIn, signal } = wanted
  for (const file of [reportFile, archive, keepOutputsIn]) {
    if (file !== undefined && existsSync(file)) refuse('exists', file, 'exists already: move it away first')
  }
  const options = { limits, ...(signal === undefined ? {} : { signal }) }
  const leftOut: WorkspaceProblem[] = []
  const leaveOut = (place: string, problems: readonly WorkspaceProblem[]) => {
    if (problems.length > 0 && !wanted.allowLoss) {
      refuse(
        'invalid',
        place,
        `would not hold everything, and the rest would be lost: ${nameProblems(problems)}`,
      )
    }
    leftOut.push(...problems)
  }
  const skips = (path: string) => path === 'workspace' || path === WORKTREE
  const folders = agents.map(({ name, workspace }) => ({ folder: workspace, prefix: name, skips }))
  const listed =
    archive === undefined ? [] : mustHave(await listArchive(folders, { file: archive, ...options }))
  leaveOut(
    archive ?? '',
    listed.flatMap((folder) => folder.leftOut),
  )
  if (reportFile !== undefined) {
    writeReport(reportFile, report)
    made.push(reportFile)
  }
  if (keepOutputsIn !== undefined) {
    const copied = mustHave(await copySideBySide(agents, keepOutputsIn, options))
    made.push(keepOutputsIn)
    leaveOut(keepOutputsIn, copied.flat())
  }
  if (archive !== undefined) {
    const texts = [{ path: 'report.md', text: report }]
    mustHave(await writeArchive({ file: archive, folders: listed, texts, ...options }))
    made.push(archive)
  }
  return leftOut
}

function mustHave<T>(outcome: WorkspaceResult<T>): T {
  if (outcome.ok) return outcome.value
  throw new ProblemError(outcome.error[0]!)
}

/** Leaves no part of a report on a full disk, and overwrites nothing. */
function writeReport(file: string, report: string): void {
  try {
    writeFileSync(file, report, { flag: 'wx' })
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') rmSync(file, { force: true })
    throw new ProblemError(problemOf(error, file))
  }
}

interface MovedAside {
  readonly parent: Directory
  readonly name: string
  readonly aside: string
}

/** Renames all workspaces to hidden names beside them. If one cannot be renamed, the others get their names back. */
function moveAside(agents: readonly DissolvedAgent[]): MovedAside[] {
  const moved: MovedAside[] = []
  try {
    for (const { workspace } of agents) {
      const name = basename(workspace)
      const aside = temporaryName(name)
      // Held open: other agents can write beside the workspace.
      const parent = openDirectory(realpathSync(dirname(workspace)))
      try {
        naming(workspace, () => renameSync(parent.at(name), parent.at(aside)))
      } catch (error) {
        parent.close()
        throw error
      }
      moved.push({ parent, name, aside })
    }
    return moved
  } catch (error) {
    for (const { parent, name, aside } of moved) {
      renameSync(parent.at(aside), parent.at(name))
      parent.close()
    }
    throw error
  }
}

/** Not abortable: a workspace without its name is of no use. Returns a problem for each folder that is not removed completely. */
async function removeAside(moved: readonly MovedAside[]): Promise<WorkspaceProblem[]> {
  const remains: WorkspaceProblem[] = []
  for (const { parent, name, aside } of moved) {
    const place = join(parent.shown, aside)
    const removed = await attempt(place, () => removeTree(parent, aside, startPace()))
    parent.close()
    if (removed.ok) continue
    const why = nameProblems(removed.error)
    remains.push(problem('half_removed', place, `still holds a part of ${name}: ${why}`))
  }
  return remains
}
