/**
 * `orc workspace dissolve`: writes a report, an archive and the outputs, then removes the workspaces. Refuses while an agent
 * runs, while something is mounted inside, and before unsaved work is lost. Until the removal begins, a failure or an abort
 * leaves everything as it was.
 */
import {
  accessSync,
  closeSync,
  constants,
  createWriteStream,
  existsSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { Header, Pax } from 'tar'
import { DEFAULT_LIMITS } from './limits.ts'
import { copySideBySide } from './outbox.ts'
import {
  attempt,
  errnoOf,
  failed,
  named,
  nameProblems,
  ProblemError,
  problem,
  refuse,
  type WorkspaceProblem,
  type WorkspaceResult,
} from './problem.ts'
import { type Directory, openDirectory } from './safe-fs/directory.ts'
import { readPieces, temporaryName } from './safe-fs/files.ts'
import { removeFolder } from './safe-fs/remove-tree.ts'
import { checkSize, type FoundFile, openFound, selectFiles } from './safe-fs/select-files.ts'
import { type AgentRecord, type FinishedAgent, formatReport, surveyAgents, unmergedLines } from './survey.ts'
import { WORKTREE } from './worktree/git.ts'
import { releaseWorktree } from './worktree/worktree.ts'

export interface DissolveWanted {
  readonly title: string
  readonly agents: readonly FinishedAgent[]
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

export async function dissolve(wanted: DissolveWanted): Promise<WorkspaceResult<Dissolved>> {
  const { title, agents, allowLoss = false, signal } = wanted
  try {
    const records = await surveyAgents(agents, signal)
    const objections = agents.flatMap((agent, index) => objectionsTo(agent, records[index]!, allowLoss))
    if (objections.length > 0) return failed(...objections)
    const report = formatReport(title, records)
    const saved = await attempt(title, () => save(wanted, report))
    if (!saved.ok) return saved
    // From here on, an abort has no effect: a half-removed workspace is useless.
    const remains: WorkspaceProblem[] = []
    const branchesKept: string[] = []
    for (const { workspace, worktree } of agents) {
      const removed = await attempt(workspace, () => removeFolder(workspace))
      if (!removed.ok) {
        const why = nameProblems(removed.error)
        remains.push(problem('half_removed', workspace, `is only partly removed: ${why}`))
      }
      if (worktree === undefined) continue
      const { branchKept } = await releaseWorktree(worktree)
      if (branchKept && worktree.branch !== undefined) branchesKept.push(worktree.branch)
    }
    if (remains.length > 0) return failed(...remains)
    return { ok: true, value: { report, agents: records, leftOut: saved.value, branchesKept } }
  } catch (error) {
    if (!signal?.aborted) throw error
    return failed(problem('called_off', title, 'was not dissolved: it was interrupted'))
  }
}

/** Everything that can be known before the removal and would stop it or lose work. */
function objectionsTo(
  { name, workspace, isRunning }: FinishedAgent,
  { unmerged, unseen }: AgentRecord,
  allowLoss: boolean,
): WorkspaceProblem[] {
  if (isRunning) return [problem('invalid', name, 'is still running: stop it first')]
  const real = realpathSync(workspace)
  const mounts = mountsBelow(real)
  if (mounts.length > 0) {
    const what = 'cannot be removed: something is mounted there'
    return mounts.map((path) => problem('irremovable', path, what))
  }
  try {
    accessSync(dirname(real), constants.W_OK)
  } catch (error) {
    const why =
      errnoOf(error) === 'EROFS' ? 'the file system is read-only' : 'its parent folder is not writable'
    return [problem('irremovable', workspace, `cannot be removed: ${why}`)]
  }
  if (allowLoss) return []
  const found: WorkspaceProblem[] = []
  // Ignored files are often large and can be generated again: the report lists them, and they stop nothing.
  const lost = unmerged.flatMap((work) => unmergedLines({ ...work, commits: 0, ignored: [] }))
  if (lost.length > 0) {
    const what = lost.map((line) => line.slice(2)).join('; ')
    found.push(problem('invalid', name, `has unsaved work: ${what}`))
  }
  if (unseen.length > 0) {
    const why = nameProblems(unseen)
    found.push(problem('invalid', name, `may have unsaved work in a worktree that cannot be checked: ${why}`))
  }
  return found
}

/** Mount points inside a folder, including bind mounts of the same file system. Finds none without /proc. */
function mountsBelow(folder: string): string[] {
  if (!existsSync('/proc/self/mountinfo')) return []
  return readFileSync('/proc/self/mountinfo', 'latin1')
    .split('\n')
    .map((line) => {
      // The fifth field is the mount point; spaces and other special bytes are written in octal.
      const escaped = line.split(' ')[4] ?? ''
      const byteOf = (_: string, digits: string) => String.fromCharCode(Number.parseInt(digits, 8))
      return Buffer.from(escaped.replace(/\\(\d{3})/g, byteOf), 'latin1').toString()
    })
    .filter((path) => path.startsWith(`${folder}/`))
}

/** Writes the report, the outputs and the archive: all of them, or nothing. Returns what they leave out. */
async function save(wanted: DissolveWanted, report: string): Promise<WorkspaceProblem[]> {
  const { agents, reportFile, archive, keepOutputsIn, allowLoss, signal } = wanted
  const leftOut: WorkspaceProblem[] = []
  const leaveOut = (target: string, problems: readonly WorkspaceProblem[]) => {
    if (problems.length > 0 && !allowLoss) {
      const what = `would be incomplete, and the rest would be lost: ${nameProblems(problems)}`
      refuse('invalid', target, what)
    }
    leftOut.push(...problems)
  }
  const made: string[] = []
  for (const path of [reportFile, archive, keepOutputsIn]) {
    if (path === undefined) continue
    if (existsSync(path)) refuse('exists', path, 'already exists; move it away first')
  }
  try {
    if (reportFile !== undefined) {
      await named(reportFile, () => {
        const fd = openSync(reportFile, 'wx')
        made.push(reportFile)
        try {
          writeFileSync(fd, report)
        } finally {
          closeSync(fd)
        }
      })
    }
    if (archive !== undefined) {
      const folders = await named(archive, () => listFolders(agents, signal))
      leaveOut(
        archive,
        folders.flatMap((folder) => folder.leftOut),
      )
      await named(archive, () => writeArchive(archive, folders, report, signal))
      made.push(archive)
    }
    if (keepOutputsIn !== undefined) {
      const copied = await copySideBySide(agents, keepOutputsIn, signal)
      if (!copied.ok) throw new ProblemError(copied.error[0]!)
      made.push(keepOutputsIn)
      leaveOut(keepOutputsIn, copied.value.flat())
    }
    signal?.throwIfAborted()
    return leftOut
  } catch (error) {
    for (const path of made.toReversed()) await removeFolder(path)
    throw error
  }
}

interface ArchivedFolder {
  readonly folder: string
  /** The folder in the archive that its content is in. */
  readonly prefix: string
  readonly files: readonly FoundFile[]
  readonly leftOut: readonly WorkspaceProblem[]
}

async function listFolders(
  agents: readonly FinishedAgent[],
  signal: AbortSignal | undefined,
): Promise<ArchivedFolder[]> {
  const listed: ArchivedFolder[] = []
  for (const { name, workspace } of agents) {
    using root = await openRoot(workspace, name)
    const skips = (path: string) => path === 'workspace' || path === WORKTREE
    const { files, leftOut } = await selectFiles(root, {
      limits: DEFAULT_LIMITS,
      ...{ signal, hardLinks: 'inside', skips },
    })
    listed.push({ folder: workspace, prefix: name, files, leftOut })
  }
  const files = listed.flatMap((folder) => folder.files)
  checkSize(files, DEFAULT_LIMITS, 'The archive')
  return listed
}

/** Reports a folder that cannot be opened under its own name, not under the archive's. */
function openRoot(folder: string, prefix: string): Promise<Directory> {
  return named(folder, () => openDirectory(folder, { shown: prefix }))
}

/** Writes a .tar.gz of regular files, read through open folders. It appears complete or not at all. */
async function writeArchive(
  file: string,
  folders: readonly ArchivedFolder[],
  report: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const draft = join(dirname(file), temporaryName(basename(file)))
  try {
    const blocks = Readable.from(archiveBlocks(folders, report, signal), { objectMode: false })
    await pipeline(blocks, createGzip(), createWriteStream(draft, { flags: 'wx', mode: 0o644 }))
    renameSync(draft, file)
  } finally {
    rmSync(draft, { force: true })
  }
}

const BLOCK = 512

async function* archiveBlocks(
  folders: readonly ArchivedFolder[],
  report: string,
  signal: AbortSignal | undefined,
) {
  const text = Buffer.from(report)
  yield headerOf('report.md', text.length, 0o644, new Date())
  yield text
  yield padding(text.length)
  for (const { folder, prefix, files } of folders) {
    using root = await openRoot(folder, prefix)
    for (const found of files) {
      const file = openFound(root, found)
      try {
        const { size, mode, mtime } = file.stat
        yield headerOf(`${prefix}/${found.path}`, Number(size), Number(mode & 0o777n), mtime)
        yield* readPieces(file, found.shown, signal)
        yield padding(Number(size))
      } finally {
        closeSync(file.fd)
      }
    }
  }
  yield Buffer.alloc(2 * BLOCK)
}

/** Fills the last block of a file. */
const padding = (size: number) => Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK)

/** Puts an extended header in front for values that do not fit into the old one, such as a long path. */
function headerOf(path: string, size: number, mode: number, mtime: Date): Buffer {
  const header = new Header({ path, size, mode, mtime, type: 'File' })
  header.encode()
  const block = header.block!
  return header.needPax ? Buffer.concat([new Pax({ path, size, mtime }).encode(), block]) : block
}
