/** outbox/ (S4.7 to S4.11): collecting, checking and copying the outputs of an agent, and writing them for a model. */
import { closeSync, mkdirSync, renameSync } from 'node:fs'
import { basename, join } from 'node:path'
import { formatBytes } from '../base/bytes.ts'
import { DEFAULT_LIMITS, type FileLimits, TEXT_BYTES } from './limits.ts'
import {
  attempt,
  named,
  nameProblems,
  problem,
  refuse,
  type WorkspaceProblem,
  type WorkspaceResult,
} from './problem.ts'
import {
  type Directory,
  mustOpen,
  type Opened,
  openDirectory,
  openFolder,
  openFolders,
  openPart,
  showName,
  splitPath,
} from './safe-fs/directory.ts'
import {
  createFile,
  type FileContent,
  type FilePart,
  makeFolders,
  makeWithParents,
  readContent,
  readPartIn,
  readSmall,
  replaceFile,
  temporaryName,
} from './safe-fs/files.ts'
import { removeFolder, removeTree } from './safe-fs/remove-tree.ts'
import { checkSize, type FoundFile, openFound, parseOutputs, selectFiles } from './safe-fs/select-files.ts'
import { tidy } from './skill-and-instructions.ts'

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
  /** The results themselves: no summary, reports or partial results. */
  readonly deliverables: readonly OutboxFile[]
  readonly summary: string | undefined
  /** Why summary.md exists but cannot be read: it is too large, or a hard link. */
  readonly summaryProblem?: WorkspaceProblem
  readonly errorReport: ErrorReport | undefined
  /** Why error_report.md exists but cannot be read. */
  readonly errorReportProblem?: WorkspaceProblem
  /** Below outbox/partial/ (S4.11). */
  readonly partial: readonly OutboxFile[]
  /** Links, devices and invalid names, each with the reason why it does not count. */
  readonly leftOut: readonly WorkspaceProblem[]
}

const SUMMARY = 'summary.md'
export const ERROR_REPORT = 'error_report.md'
const PARTIAL = 'partial/'
/** S4.7, S4.8, S4.11. */
const REPORTS = new Set([SUMMARY, ERROR_REPORT, 'changelog.md', 'issues.md', 'metadata.json'])

interface CollectOptions {
  readonly limits?: FileLimits
  /** Hash each output. */
  readonly content?: boolean
  /** Refuses an outbox over the size limit, even if nothing is read. */
  readonly sizeCounts?: boolean
  readonly signal?: AbortSignal | undefined
}

export function collectOutbox(
  workspace: string,
  { limits = DEFAULT_LIMITS, content = false, sizeCounts = content, signal }: CollectOptions = {},
): Promise<WorkspaceResult<Outbox>> {
  return attempt('outbox', async () => {
    using folder = openPart(workspace, 'outbox')
    const { files, leftOut } = await selectFiles(folder, { limits, signal, hardLinks: 'inside' })
    if (sizeCounts) checkSize(files, limits, folder.shown)
    const outputs: OutboxFile[] = []
    let left = limits.referencedBytes
    for (const file of files) {
      const { path, stat } = file
      if (!content) {
        outputs.push({ path, size: Number(stat.size) })
        continue
      }
      const { size, sha256 } = await readFound(folder, file, left, signal)
      left -= size
      outputs.push({ path, size, sha256 })
    }
    return { ...sortOutputs(outputs), leftOut, ...readReports(folder, outputs) }
  })
}

function sortOutputs(outputs: readonly OutboxFile[]) {
  const partial = outputs.filter(({ path }) => path.startsWith(PARTIAL))
  const deliverables = outputs.filter(({ path }) => !REPORTS.has(path) && !path.startsWith(PARTIAL))
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

/** The content of error_report.md (S4.11). A missing part is empty. */
export interface ErrorReport {
  readonly type: string
  readonly description: string
  readonly attemptedRecovery: string
  readonly suggestedResolution: string
  readonly partialWork: string
}

const PARTS = {
  'error type': 'type',
  description: 'description',
  'attempted recovery': 'attemptedRecovery',
  'suggested resolution': 'suggestedResolution',
  'partial work': 'partialWork',
} as const satisfies Record<string, keyof ErrorReport>

/** A failing agent may not follow the form: text outside the known headings counts as description. */
export function parseErrorReport(content: string): ErrorReport {
  const parts: Record<keyof ErrorReport, string[]> = {
    type: [],
    description: [],
    attemptedRecovery: [],
    suggestedResolution: [],
    partialWork: [],
  }
  let current: keyof ErrorReport = 'description'
  for (const line of tidy(content).split('\n')) {
    const heading = /^#{1,6}[ \t]+(.*?)[ \t:]*$/.exec(line)?.[1]?.toLowerCase()
    const part = Object.entries(PARTS).find(([name]) => name === heading)?.[1]
    if (part !== undefined) current = part
    else if (heading !== 'error report') parts[current].push(line)
  }
  const textOf = (part: keyof ErrorReport) => tidy(parts[part].join('\n'))
  return {
    type: textOf('type'),
    description: textOf('description'),
    attemptedRecovery: textOf('attemptedRecovery'),
    suggestedResolution: textOf('suggestedResolution'),
    partialWork: textOf('partialWork'),
  }
}

async function readFound(
  root: Directory,
  found: FoundFile,
  most: number,
  signal: AbortSignal | undefined,
): Promise<FileContent> {
  const file = openFound(root, found)
  try {
    if (file.stat.size > most) {
      const size = formatBytes(Number(file.stat.size))
      refuse('too_large', found.shown, `has grown to ${size} since it was seen, which is over the limit`)
    }
    return await readContent(file, found.shown, signal)
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
  return leftOut.length === 0 ? '' : `; ${nameProblems(leftOut, 3)}`
}

function whyLeftOut({ leftOut }: Outbox, name: string): string {
  const trap = leftOut.find(({ path }) => path === `outbox/${name}`)
  return trap === undefined ? '' : `: ${trap.message}`
}

interface CopyOptions {
  readonly limits?: FileLimits
  readonly signal?: AbortSignal | undefined
  /** If given, large files stay where they are and are reported here (C21). */
  readonly stays?: (path: string) => void
  /** Called for each copied file. */
  readonly copied?: (path: string, sha256: string) => void
  /** Selects the files to copy; all if not given. */
  readonly takes?: (path: string) => boolean
}

export interface AgentFolder {
  readonly name: string
  readonly workspace: string
}

/**
 * Copies the outputs of several agents, large files too, to new folders `{to}/{agent}`: of all agents, or of none. Returns what
 * was left out of each.
 */
export function copySideBySide(
  agents: readonly AgentFolder[],
  to: string,
  signal?: AbortSignal,
): Promise<WorkspaceResult<readonly (readonly WorkspaceProblem[])[]>> {
  return attempt(to, async () => {
    const made: string[] = []
    try {
      const first = makeWithParents(to)
      if (first !== undefined) made.push(first)
      // Before anything is copied: a folder that exists already holds something else.
      for (const { name } of agents) {
        const target = join(to, name)
        await named(target, () => mkdirSync(target))
        made.push(target)
      }
      const leftOut: (readonly WorkspaceProblem[])[] = []
      for (const { name, workspace } of agents) {
        const target = join(to, name)
        leftOut.push(await named(target, () => copyFrom(workspace, { signal }, () => openDirectory(target))))
      }
      return leftOut
    } catch (error) {
      for (const folder of made.toReversed()) await removeFolder(folder)
      throw error
    }
  })
}

/**
 * Copies the outputs of an agent into `parent/name`, replacing anything there. Makes `parent` if it is missing. The copy is
 * hidden until it is complete, so that after a crash no part of it passes for the whole. A failure leaves nothing.
 */
export function keepOutbox(
  workspace: string,
  to: { readonly parent: string; readonly name: string },
  options: CopyOptions,
): Promise<WorkspaceResult<readonly WorkspaceProblem[]>> {
  const { name } = to
  return attempt(name, async () => {
    // Stays open while it is used, so that no agent can put a link in its place.
    const parent = await named(basename(to.parent), () => {
      mkdirSync(to.parent, { recursive: true })
      return openDirectory(to.parent, { shown: basename(to.parent) })
    })
    const draft = temporaryName(name)
    try {
      const leftOut = await copyFrom(workspace, options, () => {
        mkdirSync(parent.at(draft), 0o755)
        return mustOpen(openFolder(parent, draft))
      })
      await removeTree(parent, name)
      renameSync(parent.at(draft), parent.at(name))
      return leftOut
    } catch (error) {
      for (const left of [draft, name]) await removeTree(parent, left)
      throw error
    } finally {
      parent.close()
    }
  })
}

async function copyFrom(
  workspace: string,
  options: CopyOptions,
  openTarget: () => Directory,
): Promise<readonly WorkspaceProblem[]> {
  using outbox = openPart(workspace, 'outbox')
  return await copyFiles(outbox, openTarget, options)
}

/** Copies all files below an open folder. Returns what was left out. */
export async function copyFiles(
  from: Directory,
  openTarget: () => Directory,
  { limits = DEFAULT_LIMITS, signal, stays, copied, takes }: CopyOptions,
): Promise<readonly WorkspaceProblem[]> {
  const { files, leftOut } = await selectFiles(from, { limits, signal, hardLinks: 'inside' })
  checkSize(files, limits, from.shown)
  using target = openTarget()
  for (const found of files) {
    if (takes?.(found.path) === false) continue
    if (stays !== undefined && found.stat.size > limits.inlineBytes) {
      stays(found.path)
      continue
    }
    using folder = makeFolders(target, found.segments.slice(0, -1))
    const sha256 = await copyFile(from, found, folder, signal)
    copied?.(found.path, sha256)
  }
  return leftOut
}

/** Returns the hash of the content. */
async function copyFile(
  from: Directory,
  found: FoundFile,
  folder: Directory,
  signal: AbortSignal | undefined,
): Promise<string> {
  const file = openFound(from, found)
  try {
    const out = createFile(folder, found.segments.at(-1)!, 0o644 | Number(found.stat.mode & 0o111n))
    try {
      return (await readContent(file, found.shown, signal, out)).sha256
    } finally {
      closeSync(out)
    }
  } finally {
    closeSync(file.fd)
  }
}

/** Writes the report of an agent that uses commands: as its summary, and as its result if it has no other. */
export async function deliverReport(workspace: string, report: string): Promise<void> {
  const collected = await collectOutbox(workspace)
  if (!collected.ok) return
  using outbox = openPart(workspace, 'outbox')
  const text = `${report.trim()}\n`
  if (collected.value.summary === undefined) replaceFile(outbox, 'summary.md', text, 0o644)
  if (collected.value.deliverables.length === 0) replaceFile(outbox, 'result.md', text, 0o644)
}

/** Writes files that a model has answered with into an outbox. */
export function writeOutputs(
  workspace: string,
  files: readonly { path: string; content: string }[],
): Promise<WorkspaceResult<void>> {
  return attempt('outbox', () => {
    using outbox = openPart(workspace, 'outbox')
    for (const { path, content } of files) {
      const split = splitPath(path.replace(/^outbox\//, ''))
      if (!split.ok) return refuse('bad_path', showName(path.slice(0, 100)), split.error)
      const name = split.value.at(-1)
      if (name === undefined) return refuse('bad_path', showName(path.slice(0, 100)), 'names no file')
      using folder = makeFolders(outbox, split.value.slice(0, -1))
      replaceFile(folder, name, content.toWellFormed(), 0o644)
    }
  })
}

/** Reads the beginning of an output; follows no link along its path. Undefined if there is nothing to read. */
export function readOutput(workspace: string, path: string, most: number): FilePart | undefined {
  const split = splitPath(path.replace(/^outbox\//, ''))
  if (!split.ok) return undefined
  try {
    using outbox = openPart(workspace, 'outbox')
    const folder = openFolders(outbox, split.value.slice(0, -1))
    if (!folder.ok) return undefined
    try {
      return readPartIn(folder.value, split.value.at(-1)!, most, 'beginning')
    } finally {
      folder.value.close()
    }
  } catch {
    return undefined
  }
}
