import { renameSync } from 'node:fs'
import { ERROR_REPORT, type ErrorReport, parseErrorReport } from './error-report.ts'
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
 * Makes way for the next attempt (S4.12): the outbox, with error_report.md and partial/, and status.json go to
 * attempts/N/ by renaming, so that nothing in them is read or lost. workspace/ stays. Done twice, it is done once.
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

/** Makes way for an attempt that is begun anew: what an earlier begin of it left is no work of anybody's. */
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

/** An agent may have made its own folders read-only, or closed to all. */
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
    // To be moved, a folder must be writable itself: its `..` changes.
    allowOwner(from.at(name))
    renameSync(from.at(name), to.at(name))
  }
}

export interface EarlierAttempt {
  readonly number: number
  /** From status.json. If that does not say how or why the attempt ended, the run's own reason is added. */
  readonly status: WorkspaceStatus | undefined
  readonly errorReport: ErrorReport | undefined
  /** Why there is none, where its file is there. */
  readonly errorReportProblem?: WorkspaceProblem
}

const MOST_ATTEMPTS = 1000

/** The attempts that were kept, the first one first. */
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

/** A plain command never touches its status.json, and a killed one no more: why it was put aside is how it ended. */
function withWhy(status: WorkspaceStatus | undefined, why: Opened<Buffer>): WorkspaceStatus | undefined {
  if (!why.ok) return status
  const state = status !== undefined && isFinal(status.state) ? status.state : 'failed'
  return { ...status, state, error: status?.error ?? { message: why.value.toString().trim() } }
}
