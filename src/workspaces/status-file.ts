import { hash } from 'node:crypto'
import { STATUS_BYTES } from './limits.ts'
import { failed, type Outcome, problem, problemOf } from './problem.ts'
import { type Directory, lookAt, openDirectory } from './safe-fs/directory.ts'
import { readSmall } from './safe-fs/small-file.ts'
import { replaceFile, writeNew } from './safe-fs/writing.ts'
import {
  mayFollow,
  mergeStatus,
  type ParsedStatus,
  parseStatus,
  pendingStatus,
  type RawStatus,
  type Status,
  type StatusPatch,
} from './status.ts'

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
