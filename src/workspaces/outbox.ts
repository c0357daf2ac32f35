import { closeSync, mkdirSync, renameSync } from 'node:fs'
import { basename, join } from 'node:path'
import { formatBytes } from '../base/bytes.ts'
import { ERROR_REPORT, type ErrorReport, parseErrorReport } from './attempts.ts'
import { DEFAULT_LIMITS, type FileLimits, TEXT_BYTES } from './limits.ts'
import {
  attempt,
  errnoOf,
  ProblemError,
  problem,
  problemOf,
  refuse,
  type WorkspaceProblem,
  type WorkspaceResult,
} from './problem.ts'
import {
  type Directory,
  type Opened,
  openDirectory,
  openFolder,
  openFolders,
  openPart,
} from './safe-fs/directory.ts'
import { showName, splitPath } from './safe-fs/entry-name.ts'
import { type Pace, startPace } from './safe-fs/pace.ts'
import { type FileContent, type FilePart, readContent, readPartIn, readSmall } from './safe-fs/read-file.ts'
import { removeFolder, removeTree } from './safe-fs/remove-tree.ts'
import { checkSize, type FoundFile, openFound, parseOutputs, selectFiles } from './safe-fs/select-files.ts'
import { createFile, makeFolders, makeWithParents, replaceFile, temporaryName } from './safe-fs/write-file.ts'

export interface OutboxFile {
  /** Below outbox/. */
  readonly path: string
  readonly size: number
  /** Set if the caller asked for content. */
  readonly sha256?: string
}

/** The files that an agent has delivered. workspace/ is never read (S4.10). */
export interface Outbox {
  readonly outputs: readonly OutboxFile[]
  /** The work itself, without the summary, the reports and the partial work. */
  readonly deliverables: readonly OutboxFile[]
  readonly summary: string | undefined
  /** Why the file exists but cannot be read: too large, or a hard link. */
  readonly summaryProblem?: WorkspaceProblem
  readonly errorReport: ErrorReport | undefined
  /** The same for the error report. */
  readonly errorReportProblem?: WorkspaceProblem
  /** Below outbox/partial/ (S4.11). */
  readonly partial: readonly OutboxFile[]
  /** Links, devices and invalid names, each with the reason why it does not count. */
  readonly leftOut: readonly WorkspaceProblem[]
}

const SUMMARY = 'summary.md'
const PARTIAL = 'partial/'
const MOST_NAMED = 3
/** S4.7, S4.8, S4.11. */
const ABOUT_THE_WORK = new Set([SUMMARY, ERROR_REPORT, 'changelog.md', 'issues.md', 'metadata.json'])

interface CollectOptions {
  readonly limits?: FileLimits
  /** Hash each output. */
  readonly content?: boolean
  /** Refuses an outbox over the size limit, even if nothing is read. */
  readonly sizeCounts?: boolean
  readonly signal?: AbortSignal
}

export function collectOutbox(
  workspace: string,
  { limits = DEFAULT_LIMITS, content = false, sizeCounts = content, signal }: CollectOptions = {},
): Promise<WorkspaceResult<Outbox>> {
  return attempt('outbox', async () => {
    const pace = startPace(signal)
    const folder = openPart(workspace, 'outbox')
    try {
      const { files, leftOut } = await selectFiles(folder, { limits, pace, hardLinks: 'inside' })
      if (sizeCounts) checkSize(files, limits, folder.shown)
      const outputs: OutboxFile[] = []
      let left = limits.referencedBytes
      for (const file of files) {
        const { path, stat } = file
        if (!content) {
          outputs.push({ path, size: Number(stat.size) })
          continue
        }
        await pace.rest()
        const { size, sha256 } = await readFound(folder, file, left, pace)
        left -= size
        outputs.push({ path, size, sha256 })
      }
      return { ...sortOutputs(outputs), leftOut, ...readReports(folder, outputs) }
    } finally {
      folder.close()
    }
  })
}

function sortOutputs(outputs: readonly OutboxFile[]) {
  const partial = outputs.filter(({ path }) => path.startsWith(PARTIAL))
  const deliverables = outputs.filter(({ path }) => !ABOUT_THE_WORK.has(path) && !path.startsWith(PARTIAL))
  return { outputs, partial, deliverables }
}

function readReports(folder: Directory, outputs: readonly OutboxFile[]) {
  const read = (name: string): Opened<Buffer> | undefined => {
    if (!outputs.some(({ path }) => path === name)) return undefined
    return readSmall(folder, name, TEXT_BYTES)
  }
  const [summary, report] = [read(SUMMARY), read(ERROR_REPORT)]
  return {
    summary: summary?.ok ? textOf(summary.value) : undefined,
    ...(summary?.ok === false ? { summaryProblem: summary.error } : {}),
    errorReport: report?.ok ? parseErrorReport(textOf(report.value)) : undefined,
    ...(report?.ok === false ? { errorReportProblem: report.error } : {}),
  }
}

const textOf = (bytes: Buffer) => bytes.toString().replace(/^\ufeff/, '')

async function readFound(root: Directory, found: FoundFile, most: number, pace: Pace): Promise<FileContent> {
  const file = openFound(root, found)
  try {
    if (file.stat.size > most) {
      const size = formatBytes(Number(file.stat.size))
      refuse('too_large', found.shown, `has grown to ${size} since it was seen, which is over the limit`)
    }
    return await readContent(file, found.shown, pace)
  } finally {
    closeSync(file.fd)
  }
}

interface Requirements {
  /** Patterns of the plan; each must match at least one file. */
  readonly outputs?: readonly string[]
  /** The summary must be longer than this many characters; 0: not blank. */
  readonly summaryOver?: number
}

/** Requirements that are not met (S4.7, C22); empty if the work is complete. */
export function findShortcomings(
  outbox: Outbox,
  { outputs = [], summaryOver = 0 }: Requirements = {},
): WorkspaceProblem[] {
  const found: WorkspaceProblem[] = []
  const characters = [...(outbox.summary ?? '').trim()].length
  if (outbox.summary === undefined) {
    found.push(
      outbox.summaryProblem ??
        problem(
          'missing',
          `outbox/${SUMMARY}`,
          `is required but does not exist${whyLeftOut(outbox, SUMMARY)}`,
        ),
    )
  } else if (characters <= summaryOver) {
    const why =
      summaryOver === 0
        ? 'is empty'
        : `has ${characters} characters, and more than ${summaryOver} are required`
    found.push(problem('invalid', `outbox/${SUMMARY}`, why))
  }
  if (outbox.deliverables.length === 0) {
    const why = 'holds no deliverable: at least one file besides the summary is required'
    const others = outbox.leftOut.filter(({ path }) => path !== `outbox/${SUMMARY}`)
    found.push(problem('missing', 'outbox', why + namesOf(others)))
  }
  const patterns = parseOutputs(outputs)
  if (!patterns.ok) return [...found, ...patterns.error]
  const paths = outbox.outputs.map(({ path }) => path.split('/'))
  for (const { pattern, takes, leadsThrough } of patterns.value) {
    if (paths.some((path) => takes(path))) continue
    const trap = outbox.leftOut.find(({ path }) => leadsThrough(path.split('/').slice(1)))
    const why = trap === undefined ? '' : `; ${trap.message}`
    found.push(problem('missing', 'outbox', `has nothing that matches ${pattern}${why}`))
  }
  return found
}

/** Lists omitted entries, because one of them may be the missing file. */
export function namesOf(leftOut: readonly WorkspaceProblem[]): string {
  const more = leftOut.length - MOST_NAMED
  const named = leftOut.slice(0, MOST_NAMED).map(({ message }) => `; ${message}`)
  return named.join('') + (more > 0 ? `; and ${more} more` : '')
}

function whyLeftOut({ leftOut }: Outbox, name: string): string {
  const trap = leftOut.find(({ path }) => path === `outbox/${name}`)
  return trap === undefined ? '' : `: ${trap.message}`
}

interface CopyOptions {
  readonly limits?: FileLimits
  readonly signal?: AbortSignal
  /** If given, large files stay where they are and are reported here (C21). */
  readonly stays?: (path: string) => void
  /** Called for each copied file. */
  readonly copied?: (path: string, sha256: string) => void
  /** Selects the files to copy; all if not given. */
  readonly takes?: (path: string) => boolean
}

/** A folder to create inside another one to which agents can write. */
interface NewFolder {
  readonly parent: Directory
  readonly name: string
}

type OpenTarget = () => Directory | Promise<Directory>

/** Copies the outputs of an agent, large ones too, into an empty folder of the user's. Returns what was left out. */
function copyOutbox(
  workspace: string,
  to: string,
  options: CopyOptions,
): Promise<WorkspaceResult<readonly WorkspaceProblem[]>> {
  return attempt(to, () => copyFrom(workspace, options, () => openDirectory(to)))
}

export interface AgentFolder {
  readonly name: string
  readonly workspace: string
}

/**
 * Copies the outputs of several agents to new folders `{to}/{agent}`: of all agents, or of none. Returns what was left out of
 * each.
 */
export function copySideBySide(
  agents: readonly AgentFolder[],
  to: string,
  options: Pick<CopyOptions, 'limits' | 'signal'>,
): Promise<WorkspaceResult<readonly (readonly WorkspaceProblem[])[]>> {
  return attempt(to, async () => {
    const made: string[] = []
    try {
      const first = makeWithParents(to)
      if (first !== undefined) made.push(first)
      // Before anything is copied: a folder that exists already holds something else.
      for (const { name } of agents) {
        const target = join(to, name)
        try {
          mkdirSync(target)
        } catch (error) {
          throw new ProblemError(problemOf(error, target))
        }
        made.push(target)
      }
      const leftOut: (readonly WorkspaceProblem[])[] = []
      for (const { name, workspace } of agents) {
        const target = join(to, name)
        const copied = await copyOutbox(workspace, target, options)
        if (!copied.ok) throw new ProblemError(copied.error[0]!)
        leftOut.push(copied.value)
      }
      return leftOut
    } catch (error) {
      for (const folder of made.toReversed()) await removeFolder(folder)
      throw error
    }
  })
}

/** Copies the outputs of an agent into `parent/name`, which appears complete or not at all. Makes `parent` if it is missing. */
export async function keepOutbox(
  workspace: string,
  to: { readonly parent: string; readonly name: string },
  options: CopyOptions,
): Promise<WorkspaceResult<readonly WorkspaceProblem[]>> {
  const opened = await attempt(basename(to.parent), () => openOrMake(to.parent))
  if (!opened.ok) return opened
  const parent = opened.value
  try {
    return await wholeOrNothing({ parent, name: to.name }, (openTarget) =>
      copyFrom(workspace, options, openTarget),
    )
  } finally {
    parent.close()
  }
}

/** Stays open while it is used, so that no agent can put a link in its place. */
function openOrMake(path: string): Directory {
  const shown = basename(path)
  try {
    return openDirectory(path, { shown })
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error
    mkdirSync(path, { recursive: true })
    return openDirectory(path, { shown })
  }
}

/** Fills a hidden folder and renames it, so that no part of it passes for the whole, even after a crash. A failure leaves nothing. */
function wholeOrNothing<T>(
  to: NewFolder,
  fill: (openTarget: OpenTarget) => Promise<T>,
): Promise<WorkspaceResult<T>> {
  const { parent, name } = to
  const draft = temporaryName(name)
  return attempt(name, async () => {
    try {
      const filled = await fill(() => makeDraft(parent, draft))
      await putInPlace(to, draft)
      return filled
    } catch (error) {
      for (const left of [draft, name]) await removeTree(parent, left, startPace())
      throw error
    }
  })
}

async function makeDraft(parent: Directory, draft: string): Promise<Directory> {
  try {
    mkdirSync(parent.at(draft), 0o755)
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw error
    await removeTree(parent, draft, startPace())
    mkdirSync(parent.at(draft), 0o755)
  }
  const opened = openFolder(parent, draft)
  if (!opened.ok) throw new ProblemError(opened.error)
  return opened.value
}

const IS_TAKEN: ReadonlySet<string> = new Set(['EEXIST', 'ENOTEMPTY', 'ENOTDIR'])

/** Replaces anything that an agent has put there. */
async function putInPlace({ parent, name }: NewFolder, draft: string): Promise<void> {
  try {
    renameSync(parent.at(draft), parent.at(name))
  } catch (error) {
    if (!IS_TAKEN.has(errnoOf(error) ?? '')) throw error
    await removeTree(parent, name, startPace())
    renameSync(parent.at(draft), parent.at(name))
  }
}

async function copyFrom(
  workspace: string,
  options: CopyOptions,
  openTarget: OpenTarget,
): Promise<readonly WorkspaceProblem[]> {
  const outbox = openPart(workspace, 'outbox')
  try {
    return await copyFiles(outbox, openTarget, options)
  } finally {
    outbox.close()
  }
}

/** Copies all files below an open folder. Returns what was left out. */
export async function copyFiles(
  from: Directory,
  openTarget: OpenTarget,
  { limits = DEFAULT_LIMITS, signal, stays, copied, takes }: CopyOptions,
): Promise<readonly WorkspaceProblem[]> {
  const pace = startPace(signal)
  const { files, leftOut } = await selectFiles(from, { limits, pace, hardLinks: 'inside' })
  checkSize(files, limits, from.shown)
  const target = await openTarget()
  try {
    for (const found of files) {
      await pace.rest()
      if (takes?.(found.path) === false) continue
      if (stays !== undefined && found.stat.size > limits.inlineBytes) {
        stays(found.segments.join('/'))
        continue
      }
      const above = found.segments.slice(0, -1)
      const folder = above.length === 0 ? target : makeFolders(target, above)
      try {
        const file = openFound(from, found)
        try {
          const mode = 0o644 | Number(found.stat.mode & 0o111n)
          const out = createFile(folder, found.segments.at(-1)!, mode)
          try {
            const { sha256 } = await readContent(file, found.shown, pace, out)
            copied?.(found.path, sha256)
          } finally {
            closeSync(out)
          }
        } finally {
          closeSync(file.fd)
        }
      } finally {
        if (folder !== target) folder.close()
      }
    }
  } finally {
    target.close()
  }
  return leftOut
}

/** Writes the report of an agent that uses commands: as its summary, and as its result if it has no other. */
export async function deliverReport(workspace: string, report: string): Promise<void> {
  const collected = await collectOutbox(workspace)
  if (!collected.ok) return
  const outbox = openPart(workspace, 'outbox')
  try {
    const text = `${report.trim()}\n`
    if (collected.value.summary === undefined) replaceFile(outbox, 'summary.md', text, 0o644)
    if (collected.value.deliverables.length === 0) replaceFile(outbox, 'result.md', text, 0o644)
  } finally {
    outbox.close()
  }
}

/** Writes files that a model has answered with into an outbox. */
export function writeOutputs(
  workspace: string,
  files: readonly { path: string; content: string }[],
): Promise<WorkspaceResult<void>> {
  return attempt('outbox', () => {
    const outbox = openPart(workspace, 'outbox')
    try {
      for (const { path, content } of files) {
        const split = splitPath(path.replace(/^outbox\//, ''))
        if (!split.ok) return refuse('bad_path', showName(path.slice(0, 100)), split.error)
        const above = split.value.slice(0, -1)
        const folder = above.length === 0 ? outbox : makeFolders(outbox, above)
        try {
          replaceFile(folder, split.value.at(-1)!, content.toWellFormed(), 0o644)
        } finally {
          if (folder !== outbox) folder.close()
        }
      }
    } finally {
      outbox.close()
    }
  })
}

/** Reads the beginning of an output; follows no link on the way (C11). Undefined if there is nothing to read. */
export function readOutput(workspace: string, path: string, most: number): FilePart | undefined {
  const split = splitPath(path.replace(/^outbox\//, ''))
  if (!split.ok) return undefined
  const above = split.value.slice(0, -1)
  try {
    const outbox = openPart(workspace, 'outbox')
    try {
      const folder = above.length === 0 ? { ok: true as const, value: outbox } : openFolders(outbox, above)
      if (!folder.ok) return undefined
      try {
        return readPartIn(folder.value, split.value.at(-1)!, most, 'beginning')
      } finally {
        folder.value.close()
      }
    } finally {
      outbox.close()
    }
  } catch {
    return undefined
  }
}
