/**
 * status.json: its content, reading and writing it, and watching it. A watch is in one of these states:
 * - watching: waits for file events.
 * - due: an event came in. The file is read at the end of the turn, or after a rest if the last read took long
 *   (`REST_FACTOR` times as long), because a large file is written in many pieces.
 * - retrying: the file could not be read. It is read again after each delay in `RETRY_DELAYS_MS`, 1.6 s in all: agents write files
 *   in pieces, or remove and create them. Leads to watching, or to reported.
 * - reported: the problem was reported once; the next readable content leads to watching.
 * - closed: by `close`, or because the workspace is gone.
 */
import { hash } from 'node:crypto'
import { basename } from 'node:path'
import { z } from 'zod'
import type { Result } from '../base/result.ts'
import { STATUS_BYTES } from './limits.ts'
import { failed, problem, problemOf, type WorkspaceProblem, type WorkspaceResult } from './problem.ts'
import { type Directory, openDirectory, watchFolder } from './safe-fs/directory.ts'
import { readSmall, replaceFile, writeNew } from './safe-fs/files.ts'

export const STATUS_FILE = 'status.json'

/** S4.2. */
const WORKSPACE_STATES = ['pending', 'running', 'completed', 'failed'] as const
export type WorkspaceState = (typeof WORKSPACE_STATES)[number]

/** All allowed transitions (S4.3). A retry is a new attempt with a fresh status.json (C6). */
const NEXT: Record<WorkspaceState, readonly WorkspaceState[]> = {
  pending: ['running'],
  running: ['completed', 'failed'],
  completed: [],
  failed: [],
}

export const isFinal = (state: WorkspaceState) => NEXT[state].length === 0

/** Limit for texts that go to people and records; the file itself keeps everything. */
const LONGEST_TEXT = 10_000
const optionalText = z
  .union([z.string(), z.number()])
  .transform((value) => clip(String(value)))
  .optional()
  .catch(undefined)
const count = z.number().nonnegative().optional().catch(undefined)

const StatusError = z.object({
  type: optionalText,
  message: optionalText,
  details: z.unknown().transform(detailsText).optional(),
  recoverable: z.boolean().optional().catch(undefined),
})

/** Reads everything but the state leniently, so that a mistake in another field does not undo an agent's work. */
const WorkspaceStatus = z.object({
  state: z.enum(WORKSPACE_STATES),
  started: optionalText,
  completed: optionalText,
  error: z.preprocess(
    (value) => (typeof value === 'string' ? { message: value } : value),
    StatusError.optional().catch(undefined),
  ),
  progress: z
    .object({ current_step: optionalText, steps_completed: count, total_steps: count })
    .optional()
    .catch(undefined),
  metrics: z.record(z.string(), z.unknown()).transform(numbersOf).optional().catch(undefined),
})
export type WorkspaceStatus = z.output<typeof WorkspaceStatus>

type ParsedStatus = Result<{ status: WorkspaceStatus; raw: RawStatus }, WorkspaceProblem>
type RawStatus = Readonly<Record<string, unknown>>

/** Accepts a byte order mark and any line ends. `torn`: the file may still be being written. */
export function parseStatus(content: string): ParsedStatus {
  let raw: unknown
  try {
    raw = JSON.parse(content.replace(/^\ufeff/, ''))
  } catch {
    return { ok: false, error: problem('torn', STATUS_FILE, 'is not complete JSON') }
  }
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) {
    return { ok: false, error: problem('invalid', STATUS_FILE, 'is JSON, but not an object') }
  }
  const parsed = WorkspaceStatus.safeParse(raw)
  if (parsed.success) return { ok: true, value: { status: parsed.data, raw: raw as RawStatus } }
  const why = `has no valid state: "state" must be one of ${WORKSPACE_STATES.join(', ')}`
  return { ok: false, error: problem('invalid', STATUS_FILE, why) }
}

interface StatusPatch {
  state: WorkspaceState
  started?: string
  completed?: string
  error?: { type: string; message: string }
}

const pendingStatus: RawStatus = {
  state: 'pending',
  started: null,
  completed: null,
  error: null,
  progress: { current_step: null, steps_completed: 0, total_steps: 0 },
  metrics: { files_processed: 0, outputs_generated: 0 },
}

/** The file is not a log: between two reads an agent may have passed through a state unseen. */
function canBecome(from: WorkspaceState, to: WorkspaceState): boolean {
  return from === to || NEXT[from].some((next) => canBecome(next, to))
}

function clip(text: string): string {
  return text.length <= LONGEST_TEXT ? text : `${text.slice(0, LONGEST_TEXT)}…`
}

function detailsText(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined
  try {
    return clip(typeof value === 'string' ? value : JSON.stringify(value))
  } catch {
    // Nested too deeply to be serialized.
    return undefined
  }
}

function numbersOf(values: Record<string, unknown>): Record<string, number> {
  const numbers = Object.entries(values).filter(
    (entry): entry is [string, number] => typeof entry[1] === 'number',
  )
  return Object.fromEntries(numbers.slice(0, 100))
}

interface StatusReading {
  readonly status: WorkspaceStatus
  readonly raw: RawStatus
  /** Hash of the whole text, because an agent may change fields of its own. */
  readonly sha256: string
}

export function readStatus(workspace: string): Result<StatusReading, WorkspaceProblem> {
  try {
    using root = openDirectory(workspace, { shown: '' })
    return readStatusIn(root)
  } catch (error) {
    return { ok: false, error: problemOf(error, STATUS_FILE) }
  }
}

function readStatusIn(root: Directory): Result<StatusReading, WorkspaceProblem> {
  const read = readSmall(root, STATUS_FILE, STATUS_BYTES)
  if (!read.ok) return read
  // A line end that is appended later is not an update.
  const content = read.value.toString().trim()
  const parsed = parseStatus(content)
  return parsed.ok ? { ok: true, value: { ...parsed.value, sha256: hash('sha256', content) } } : parsed
}

/** Puts a fresh status.json in place, for a new attempt (S4.4). */
export function resetStatus(root: Directory): void {
  const found = readSmall(root, STATUS_FILE, STATUS_BYTES)
  if (!found.ok || found.value.toString() !== textOf(pendingStatus)) write(root, pendingStatus)
}

/** For a new folder that no agent knows yet. */
export function firstStatus(root: Directory): void {
  writeNew(root, STATUS_FILE, textOf(pendingStatus), 0o644)
}

/** Changes some fields for an agent that uses commands, and keeps all others (C23). */
export function updateStatus(workspace: string, patch: StatusPatch): WorkspaceResult<void> {
  try {
    using root = openDirectory(workspace, { shown: '' })
    const current = readStatusIn(root)
    if (!current.ok) return failed(current.error)
    const { status, raw } = current.value
    if (status.state !== patch.state && !NEXT[status.state].includes(patch.state)) {
      return failed(problem('invalid', STATUS_FILE, `cannot go from ${status.state} to ${patch.state}`))
    }
    write(root, { ...raw, ...patch })
    return { ok: true, value: undefined }
  } catch (error) {
    return failed(problemOf(error, STATUS_FILE))
  }
}

function write(root: Directory, status: RawStatus): void {
  replaceFile(root, STATUS_FILE, textOf(status), 0o644)
}

function textOf(status: RawStatus): string {
  return `${JSON.stringify(status, null, 2)}\n`
}

/** Hash of the content that a new attempt begins with. */
const PENDING_SHA256 = hash('sha256', textOf(pendingStatus).trim())

export type StatusUpdate =
  /** The agent has written the file. */
  | { kind: 'status'; status: WorkspaceStatus }
  /** An impossible transition; the state stays as it was (S4.3). */
  | { kind: 'refused'; message: string }
  /** Still unreadable after all retries. */
  | { kind: 'unreadable'; problem: WorkspaceProblem }
  /** No more updates will come. */
  | { kind: 'lost'; problem: WorkspaceProblem }

export interface StatusWatch {
  state(): WorkspaceState
  /** Reads now, for example because a process ended or was silent for long. */
  look(): void
  close(): void
}

interface StatusWatchOptions {
  readonly workspace: string
  /** The last known state: pending for a new attempt. */
  readonly from?: WorkspaceState
  onUpdate(update: StatusUpdate): void
  /** Delays before retries, in ms. An agent may write in pieces, or in two steps. */
  readonly retryDelays?: readonly number[]
}

const RETRY_DELAYS_MS = [20, 50, 100, 200, 400, 800]

/** After a slow read, wait this many times as long: a large file is written in many pieces. */
const REST_FACTOR = 10
const SHORT_LOOK_MS = 2

/**
 * Follows status.json by file events. It watches the folder, because the file may be replaced. Events only trigger a read
 * of the current file, so their number does not matter, and a read without changes reports nothing. An unreadable file is
 * retried a few times and then reported once.
 */
export function watchStatus({
  workspace,
  from = 'pending',
  onUpdate,
  retryDelays = RETRY_DELAYS_MS,
}: StatusWatchOptions): StatusWatch {
  let state = from
  /** The initial content is not an update. */
  let lastSeen = from === 'pending' ? PENDING_SHA256 : ''
  let lookSoon: NodeJS.Immediate | undefined
  let lookAfterRest: NodeJS.Timeout | undefined
  let notBefore = 0
  let closed = false
  /** While the file is unreadable: the number of retries, and the problem that was reported. */
  let tries = 0
  let nextTry: NodeJS.Timeout | undefined
  let reported: WorkspaceProblem['code'] | undefined

  // Watch before the first read, so that no change is missed.
  const folder = watchFolder({
    folder: workspace,
    shown: '',
    onEvent(name) {
      // Events of the folder itself have its own name.
      if (name === null || name === STATUS_FILE || name === basename(workspace)) schedule()
    },
    onLost: lose,
  })
  schedule()

  /** Reads once for all events that came in by then. */
  function schedule() {
    if (closed || lookSoon !== undefined) return
    const wait = notBefore - performance.now()
    if (wait <= 0) lookSoon = setImmediate(look)
    else lookAfterRest ??= setTimeout(look, wait)
  }

  function look() {
    clearImmediate(lookSoon)
    clearTimeout(lookAfterRest)
    lookSoon = lookAfterRest = undefined
    if (closed) return
    const began = performance.now()
    const read = readStatusIn(folder.directory)
    const took = performance.now() - began
    notBefore = took < SHORT_LOOK_MS ? 0 : began + took * REST_FACTOR
    if (!read.ok && read.error.code === 'missing' && !folder.isStillThere()) return lose('no longer exists')
    if (!read.ok) return cannotRead(read.error)
    clearTimeout(nextTry)
    nextTry = reported = undefined
    tries = 0
    if (read.value.sha256 === lastSeen) return
    lastSeen = read.value.sha256
    const { status } = read.value
    if (!canBecome(state, status.state)) {
      const message = `${STATUS_FILE} went from ${state} to ${status.state}, which is not allowed`
      return onUpdate({ kind: 'refused', message })
    }
    state = status.state
    onUpdate({ kind: 'status', status })
  }

  /** Only time uses up retries: an agent that writes byte by byte uses none, and one that never finishes is reported. */
  function cannotRead(found: WorkspaceProblem) {
    if (nextTry !== undefined || reported === found.code) return
    const wait = retryDelays[tries]
    if (wait === undefined) {
      reported = found.code
      tries = 0
      lastSeen = ''
      return onUpdate({ kind: 'unreadable', problem: found })
    }
    nextTry = setTimeout(() => {
      nextTry = undefined
      tries++
      look()
    }, wait)
  }

  function lose(why: string) {
    if (closed) return
    close()
    onUpdate({ kind: 'lost', problem: problem('missing', workspace, why) })
  }

  function close() {
    if (closed) return
    closed = true
    clearImmediate(lookSoon)
    clearTimeout(lookAfterRest)
    clearTimeout(nextTry)
    folder.close()
  }

  return { state: () => state, look, close }
}
