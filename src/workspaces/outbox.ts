import { closeSync } from 'node:fs'
import { ERROR_REPORT, type ErrorReport, parseErrorReport } from './error-report.ts'
import { formatBytes, type Limits, TEXT_BYTES } from './limits.ts'
import { parseOutputs } from './output-patterns.ts'
import { attempt, type Outcome, type Problem, problem, refuse } from './problem.ts'
import { type Content, readContent } from './safe-fs/content.ts'
import { type Directory, type Opened, openPart } from './safe-fs/directory.ts'
import { type Pace, startPace } from './safe-fs/pace.ts'
import { checkSize, type Found, openFound, selectFiles } from './safe-fs/selection.ts'
import { readSmall } from './safe-fs/small-file.ts'

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
