import { closeSync, mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { ERROR_REPORT, type ErrorReport, parseErrorReport } from './error-report.ts'
import { formatBytes, type Limits, TEXT_BYTES } from './limits.ts'
import { parseOutputs } from './output-patterns.ts'
import {
  attempt,
  errnoOf,
  type Outcome,
  type Problem,
  ProblemError,
  problem,
  problemOf,
  refuse,
} from './problem.ts'
import { type Directory, type Opened, openDirectory, openFolder, openPart } from './safe-fs/directory.ts'
import { type Pace, startPace } from './safe-fs/pace.ts'
import { type Content, readContent, readSmall } from './safe-fs/read-file.ts'
import { removeTree } from './safe-fs/remove-tree.ts'
import { checkSize, type Found, openFound, selectFiles } from './safe-fs/select-files.ts'
import { createFile, makeFolders, temporaryName } from './safe-fs/write-file.ts'
import { makeWithParents, removeFolder } from './workspaces.ts'

export interface Output {
  /** Below outbox/. */
  readonly path: string
  readonly size: number
  /** Set if the content was asked for. */
  readonly sha256?: string
}

/** The files that an agent has delivered. workspace/ is never read (S4.10). */
export interface Outbox {
  readonly outputs: readonly Output[]
  /** The work itself, without the summary, the reports and the partial work. */
  readonly deliverables: readonly Output[]
  readonly summary: string | undefined
  /** Why there is none, where its file is there: it is too large, or has another name. */
  readonly summaryProblem?: Problem
  readonly errorReport: ErrorReport | undefined
  /** The same of it. */
  readonly errorReportProblem?: Problem
  /** Below outbox/partial/ (S4.11). */
  readonly partial: readonly Output[]
  /** Links, devices, names that are none: each with why it does not count. */
  readonly leftOut: readonly Problem[]
}

const SUMMARY = 'summary.md'
const PARTIAL = 'partial/'
const MOST_NAMED = 3
/** S4.7, S4.8, S4.11. */
const ABOUT_THE_WORK = new Set([SUMMARY, ERROR_REPORT, 'changelog.md', 'issues.md', 'metadata.json'])

export interface CollectOptions {
  readonly limits: Limits
  /** Hash each output. */
  readonly content?: boolean
  /** More than could be read is refused, also where nothing is read yet. */
  readonly sizeCounts?: boolean
  readonly signal?: AbortSignal
}

export function collectOutbox(
  workspace: string,
  { limits, content = false, sizeCounts = content, signal }: CollectOptions,
): Promise<Outcome<Outbox>> {
  return attempt('outbox', async () => {
    const pace = startPace(signal)
    const folder = openPart(workspace, 'outbox')
    try {
      const { files, leftOut } = await selectFiles(folder, { limits, pace, hardLinks: 'inside' })
      if (sizeCounts) checkSize(files, limits, folder.shown)
      const outputs: Output[] = []
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

function sortOutputs(outputs: readonly Output[]) {
  const partial = outputs.filter(({ path }) => path.startsWith(PARTIAL))
  const deliverables = outputs.filter(({ path }) => !ABOUT_THE_WORK.has(path) && !path.startsWith(PARTIAL))
  return { outputs, partial, deliverables }
}

function readReports(folder: Directory, outputs: readonly Output[]) {
  const read = (name: string): Opened<Buffer> | undefined => {
    if (!outputs.some(({ path }) => path === name)) return undefined
    return readSmall(folder, name, TEXT_BYTES)
  }
  const [summary, report] = [read(SUMMARY), read(ERROR_REPORT)]
  return {
    summary: summary?.ok ? textOf(summary.value) : undefined,
    ...(summary?.ok === false ? { summaryProblem: summary.problem } : {}),
    errorReport: report?.ok ? parseErrorReport(textOf(report.value)) : undefined,
    ...(report?.ok === false ? { errorReportProblem: report.problem } : {}),
  }
}

const textOf = (bytes: Buffer) => bytes.toString().replace(/^\ufeff/, '')

async function readFound(root: Directory, found: Found, most: number, pace: Pace): Promise<Content> {
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

export interface Requirements {
  /** Patterns of the plan that must each mean at least one file. */
  readonly outputs?: readonly string[]
  /** More than so many characters; 0: any that are not blank. */
  readonly summaryOver?: number
}

/** Requirements that are not met (S4.7, C22); empty if the work is complete. */
export function findShortcomings(
  outbox: Outbox,
  { outputs = [], summaryOver = 0 }: Requirements = {},
): Problem[] {
  const found: Problem[] = []
  const characters = [...(outbox.summary ?? '').trim()].length
  if (outbox.summary === undefined) {
    found.push(
      outbox.summaryProblem ??
        problem('missing', `outbox/${SUMMARY}`, `is required and is not there${whyLeftOut(outbox, SUMMARY)}`),
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
  if (!patterns.ok) return [...found, ...patterns.problems]
  const paths = outbox.outputs.map(({ path }) => path.split('/'))
  for (const { pattern, takes, leadsThrough } of patterns.value) {
    if (paths.some((path) => takes(path))) continue
    const trap = outbox.leftOut.find(({ path }) => leadsThrough(path.split('/').slice(1)))
    const why = trap === undefined ? '' : `; ${trap.message}`
    found.push(problem('missing', 'outbox', `has nothing that matches ${pattern}${why}`))
  }
  return found
}

/** Names entries that do not count: one of them may be the missing file. */
export function namesOf(leftOut: readonly Problem[]): string {
  const more = leftOut.length - MOST_NAMED
  const named = leftOut.slice(0, MOST_NAMED).map(({ message }) => `; ${message}`)
  return named.join('') + (more > 0 ? `; and ${more} more` : '')
}

function whyLeftOut({ leftOut }: Outbox, name: string): string {
  const trap = leftOut.find(({ path }) => path === `outbox/${name}`)
  return trap === undefined ? '' : `: ${trap.message}`
}

export interface CopyOptions {
  readonly limits: Limits
  readonly signal?: AbortSignal
  /** If given, large files stay where they are and are reported here (C21). */
  readonly stays?: (path: string) => void
  /** Called for each copied file. */
  readonly copied?: (path: string, sha256: string) => void
  /** Selects the files to copy; all if not given. */
  readonly takes?: (path: string) => boolean
}

/** A folder to create in a place where agents can write, too. */
export interface NewFolder {
  readonly parent: Directory
  readonly name: string
}

type OpenTarget = () => Directory | Promise<Directory>

/** Copies the outputs of an agent, large ones too, into an empty folder of the user's. Returns what was left out. */
function copyOutbox(
  workspace: string,
  to: string,
  options: CopyOptions,
): Promise<Outcome<readonly Problem[]>> {
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
): Promise<Outcome<readonly (readonly Problem[])[]>> {
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
      const leftOut: (readonly Problem[])[] = []
      for (const { name, workspace } of agents) {
        const target = join(to, name)
        const copied = await copyOutbox(workspace, target, options)
        if (!copied.ok) throw new ProblemError(copied.problems[0]!)
        leftOut.push(copied.value)
      }
      return leftOut
    } catch (error) {
      for (const folder of made.toReversed()) await removeFolder(folder)
      throw error
    }
  })
}

/** Copies the outputs of an agent into a new folder, which appears complete or not at all. */
export function keepOutbox(
  workspace: string,
  to: NewFolder,
  options: CopyOptions,
): Promise<Outcome<readonly Problem[]>> {
  return wholeOrNothing(to, (openTarget) => copyFrom(workspace, options, openTarget))
}

/** Fills a hidden folder and renames it, so that no part of it passes for the whole, even after a crash. A failure leaves nothing. */
function wholeOrNothing<T>(to: NewFolder, fill: (openTarget: OpenTarget) => Promise<T>): Promise<Outcome<T>> {
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
  if (!opened.ok) throw new ProblemError(opened.problem)
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
): Promise<readonly Problem[]> {
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
  { limits, signal, stays, copied, takes }: CopyOptions,
): Promise<readonly Problem[]> {
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
