import { hash } from 'node:crypto'
import { z } from 'zod'
import { STATUS_BYTES } from './limits.ts'
import { failed, type Outcome, type Problem, problem, problemOf } from './problem.ts'
import { type Directory, lookAt, openDirectory } from './safe-fs/directory.ts'
import { readSmall } from './safe-fs/read-file.ts'
import { replaceFile, writeNew } from './safe-fs/write-file.ts'

/** S4.2. */
export const WORKSPACE_STATES = ['pending', 'running', 'completed', 'failed'] as const
export type WorkspaceState = (typeof WORKSPACE_STATES)[number]

/** S4.3: nothing else. A retry is a new attempt, with a status.json of its own (C6). */
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
const Status = z.object({
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
export type Status = z.output<typeof Status>

export type ParsedStatus = { ok: true; status: Status; raw: RawStatus } | { ok: false; problem: Problem }
export type RawStatus = Readonly<Record<string, unknown>>

const FILE = 'status.json'

/** A byte order mark and any line ends are fine. Torn: it may be in the middle of being written. */
export function parseStatus(content: string): ParsedStatus {
  let raw: unknown
  try {
    raw = JSON.parse(content.replace(/^\ufeff/, ''))
  } catch {
    return { ok: false, problem: problem('torn', FILE, 'is not whole JSON') }
  }
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) {
    return { ok: false, problem: problem('invalid', FILE, 'is JSON, but not an object') }
  }
  const parsed = Status.safeParse(raw)
  if (parsed.success) return { ok: true, status: parsed.data, raw: raw as RawStatus }
  const why = `says no state that there is: "state" is one of ${WORKSPACE_STATES.join(', ')}`
  return { ok: false, problem: problem('invalid', FILE, why) }
}

export interface StatusPatch {
  state?: WorkspaceState
  started?: string | null
  completed?: string | null
  error?: { type: string; message: string; details?: unknown; recoverable?: boolean } | null
  progress?: { current_step?: string | null; steps_completed?: number; total_steps?: number }
  metrics?: { files_processed?: number; outputs_generated?: number }
}

/** Fields that nobody here knows stay as they are (C23). */
export function mergeStatus(raw: RawStatus, patch: StatusPatch): RawStatus {
  const { progress, metrics, ...flat } = patch
  return {
    ...raw,
    ...flat,
    ...(progress === undefined ? {} : { progress: { ...objectOf(raw.progress), ...progress } }),
    ...(metrics === undefined ? {} : { metrics: { ...objectOf(raw.metrics), ...metrics } }),
  }
}

export const pendingStatus: RawStatus = {
  state: 'pending',
  started: null,
  completed: null,
  error: null,
  progress: { current_step: null, steps_completed: 0, total_steps: 0 },
  metrics: { files_processed: 0, outputs_generated: 0 },
}

export function mayFollow(from: WorkspaceState, to: WorkspaceState): boolean {
  return from === to || NEXT[from].includes(to)
}

/**
 * The states passed on the way from what was seen last to what is seen now, or undefined where no way leads there. A
 * file is a place and not a log: between two looks an agent may have been in a state that nobody saw.
 */
export function statesBetween(
  from: WorkspaceState,
  to: WorkspaceState,
): readonly WorkspaceState[] | undefined {
  if (from === to) return []
  for (const next of NEXT[from]) {
    const onward = statesBetween(next, to)
    if (onward !== undefined) return [next, ...onward]
  }
  return undefined
}

function objectOf(value: unknown): object {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}
}

function clip(text: string): string {
  return text.length <= LONGEST_TEXT ? text : `${text.slice(0, LONGEST_TEXT)}…`
}

function detailsText(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined
  try {
    return clip(typeof value === 'string' ? value : JSON.stringify(value))
  } catch {
    // Nested too deeply to be written out.
    return undefined
  }
}

function numbersOf(values: Record<string, unknown>): Record<string, number> {
  const numbers = Object.entries(values).filter(
    (entry): entry is [string, number] => typeof entry[1] === 'number',
  )
  return Object.fromEntries(numbers.slice(0, 100))
}

export const STATUS_FILE = 'status.json'

/** With a hash of the whole text: an agent's own fields may change, too. */
export type StatusReading = (ParsedStatus & { ok: false }) | (ParsedStatus & { ok: true; sha256: string })

export function readStatus(workspace: string): StatusReading {
  try {
    const root = openDirectory(workspace, { shown: '' })
    try {
      return readStatusIn(root)
    } finally {
      root.close()
    }
  } catch (error) {
    return { ok: false, problem: problemOf(error, STATUS_FILE) }
  }
}

export function readStatusIn(root: Directory): StatusReading {
  const read = readSmall(root, STATUS_FILE, STATUS_BYTES)
  if (!read.ok) return read
  if (read.value.equals(FRESH_BYTES)) return FRESH_READING
  // Most torn files can be told by their end, without reading megabytes of them as JSON.
  if (isHalfAnObject(read.value)) {
    return { ok: false, problem: problem('torn', STATUS_FILE, 'is not whole JSON') }
  }
  return readText(read.value.toString())
}

function readText(text: string): StatusReading {
  // A line end that comes a moment later is nothing new.
  const content = text.trim()
  const parsed = parseStatus(content)
  return parsed.ok ? { ...parsed, sha256: hash('sha256', content) } : parsed
}

function isHalfAnObject(content: Buffer): boolean {
  const begin = content
    .subarray(0, 1024)
    .toString()
    .replace(/^\ufeff/, '')
    .trimStart()
  // Complete JSON that is not an object is reported as that.
  if (begin !== '' && !begin.startsWith('{')) return false
  return !content.subarray(-1024).toString('latin1').trimEnd().endsWith('}')
}

/** Puts a fresh status.json in place, for a new attempt (S4.4). */
export function resetStatus(root: Directory): void {
  write(root, pendingStatus)
}

/** In a folder that nobody knows yet. */
export function firstStatus(root: Directory): void {
  writeNew(root, STATUS_FILE, FRESH, 0o644)
}

const TRIES = 5

/**
 * Changes some fields for an agent that speaks by commands, and keeps the others. What the agent itself wrote in the
 * meantime is read again and not lost.
 */
export function updateStatus(workspace: string, patch: StatusPatch): Outcome<Status> {
  const root = openDirectory(workspace, { shown: '' })
  try {
    for (let tries = 0; ; tries++) {
      const before = versionOf(root)
      const current = readStatusIn(root)
      if (!current.ok) return failed(current.problem)
      const { state } = current.status
      if (patch.state !== undefined && !mayFollow(state, patch.state)) {
        return failed(problem('invalid', STATUS_FILE, `cannot go from ${state} to ${patch.state}`))
      }
      const merged = mergeStatus(current.raw, patch)
      if (versionOf(root) !== before && tries < TRIES) continue
      write(root, merged)
      const parsed = parseStatus(JSON.stringify(merged))
      return parsed.ok ? { ok: true, value: parsed.status } : failed(parsed.problem)
    }
  } catch (error) {
    return failed(problemOf(error, STATUS_FILE))
  } finally {
    root.close()
  }
}

function versionOf(root: Directory): string {
  const found = lookAt(root, STATUS_FILE)
  return found === undefined ? '' : `${found.ino}:${found.mtimeNs}:${found.size}`
}

function write(root: Directory, status: RawStatus): void {
  replaceFile(root, STATUS_FILE, textOf(status), 0o644)
}

function textOf(status: RawStatus): string {
  return `${JSON.stringify(status, null, 2)}\n`
}

/** Many agents never touch it. */
const FRESH = textOf(pendingStatus)
const FRESH_BYTES = Buffer.from(FRESH)
const FRESH_READING: StatusReading = readText(FRESH)

/** Hash of the text that a new attempt begins with. */
export const FRESH_SHA256 = FRESH_READING.ok ? FRESH_READING.sha256 : ''
