import { renameSync } from 'node:fs'
import { tidy } from './instructions.ts'
import { STATUS_BYTES, TEXT_BYTES } from './limits.ts'
import { attempt, type WorkspaceProblem, type WorkspaceResult } from './problem.ts'
import {
  allowOwner,
  type Directory,
  listNames,
  lookAt,
  type Opened,
  openDirectory,
  openFolder,
  openPart,
} from './safe-fs/directory.ts'
import { startPace } from './safe-fs/pace.ts'
import { readSmall } from './safe-fs/read-file.ts'
import { removeTree } from './safe-fs/remove-tree.ts'
import { makeFolder, replaceFile } from './safe-fs/write-file.ts'
import { isFinal, parseStatus, resetStatus, STATUS_FILE, type WorkspaceStatus } from './status.ts'

const ATTEMPTS = 'attempts'
const WHY = 'why.md'

/**
 * Prepares the next attempt (S4.12): renames the outbox, with error_report.md and partial/, and status.json into
 * attempts/N/, so that nothing in them is read or lost. workspace/ stays. Idempotent.
 */
export function keepAttempt(workspace: string, number: number, why = ''): Promise<WorkspaceResult<void>> {
  return attempt(`${ATTEMPTS}/${number}`, () => {
    const root = openWritable(workspace)
    try {
      const folder = folderFor(root, number)
      try {
        move(root, folder, 'outbox')
        move(root, folder, STATUS_FILE)
        // Tells the next attempt why this one failed.
        if (why !== '') replaceFile(folder, WHY, `${why}\n`, 0o644)
      } finally {
        folder.close()
      }
      makeFolder(root, 'outbox').close()
      resetStatus(root)
    } finally {
      root.close()
    }
  })
}

/** Prepares an attempt that starts over: leftovers of its earlier start are not work. */
export function clearAttempt(workspace: string): Promise<WorkspaceResult<void>> {
  return attempt('outbox', async () => {
    const root = openWritable(workspace)
    try {
      await removeTree(root, 'outbox', startPace())
      makeFolder(root, 'outbox').close()
      resetStatus(root)
    } finally {
      root.close()
    }
  })
}

/** An agent may have removed the permissions of its own folders. */
function openWritable(workspace: string): Directory {
  allowOwner(workspace)
  return openDirectory(workspace, { shown: '' })
}

function folderFor(root: Directory, number: number): Directory {
  allowOwner(root.at(ATTEMPTS))
  const attempts = makeFolder(root, ATTEMPTS)
  try {
    allowOwner(attempts.at(String(number)))
    return makeFolder(attempts, String(number))
  } finally {
    attempts.close()
  }
}

function move(from: Directory, to: Directory, name: string): void {
  if (lookAt(to, name) === undefined && lookAt(from, name) !== undefined) {
    // A folder must be writable itself to be moved: its `..` changes.
    allowOwner(from.at(name))
    renameSync(from.at(name), to.at(name))
  }
}

export interface EarlierAttempt {
  readonly number: number
  /** From status.json, with the run's own reason if the file does not say how or why the attempt ended. */
  readonly status: WorkspaceStatus | undefined
  readonly errorReport: ErrorReport | undefined
  /** Why the file exists but cannot be read. */
  readonly errorReportProblem?: WorkspaceProblem
}

const MOST_ATTEMPTS = 1000

/** The kept attempts, oldest first. */
export function readAttempts(workspace: string): Promise<WorkspaceResult<readonly EarlierAttempt[]>> {
  return attempt(ATTEMPTS, () => {
    const root = openDirectory(workspace, { shown: '' })
    try {
      if (lookAt(root, ATTEMPTS) === undefined) return []
    } finally {
      root.close()
    }
    const folder = openPart(workspace, ATTEMPTS)
    try {
      const numbers = listNames(folder, MOST_ATTEMPTS).map(String).filter(isNumber).map(Number)
      return numbers.sort((one, other) => one - other).map((number) => readAttempt(folder, number))
    } finally {
      folder.close()
    }
  })
}

const isNumber = (name: string) => /^[1-9]\d{0,8}$/.test(name)

function readAttempt(attempts: Directory, number: number): EarlierAttempt {
  const nothing = { number, status: undefined, errorReport: undefined }
  const folder = openFolder(attempts, String(number))
  if (!folder.ok) return nothing
  const outbox = openFolder(folder.value, 'outbox')
  try {
    const status = readSmall(folder.value, STATUS_FILE, STATUS_BYTES)
    const parsed = status.ok ? parseStatus(status.value.toString()) : undefined
    const report = outbox.ok ? readSmall(outbox.value, ERROR_REPORT, TEXT_BYTES) : undefined
    return {
      number,
      status: withWhy(parsed?.ok ? parsed.value.status : undefined, readSmall(folder.value, WHY, TEXT_BYTES)),
      errorReport: report?.ok ? parseErrorReport(report.value.toString()) : undefined,
      ...(report?.ok === false && report.error.code !== 'missing'
        ? { errorReportProblem: report.error }
        : {}),
    }
  } finally {
    if (outbox.ok) outbox.value.close()
    folder.value.close()
  }
}

/** A plain command never writes status.json, and a killed one no longer does: why.md then says how it ended. */
function withWhy(status: WorkspaceStatus | undefined, why: Opened<Buffer>): WorkspaceStatus | undefined {
  if (!why.ok) return status
  const state = status !== undefined && isFinal(status.state) ? status.state : 'failed'
  return { ...status, state, error: status?.error ?? { message: why.value.toString().trim() } }
}

export const ERROR_REPORT = 'error_report.md'

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

/** A failing agent may not keep to the form: text under no known heading counts as the description. */
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
