import { hash } from 'node:crypto'
import { type Directory, lookAt, openDirectory } from './directory.ts'
import { STATUS_BYTES } from './limits.ts'
import { failed, type Outcome, problem, problemOf } from './problem.ts'
import { readSmall } from './small-file.ts'
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
import { replaceFile } from './writing.ts'

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
  // Most torn files can be told by their end, without reading megabytes of them as JSON.
  if (!endsLikeAnObject(read.value)) {
    return { ok: false, problem: problem('torn', STATUS_FILE, 'is not whole JSON') }
  }
  // A line end that comes a moment later is nothing new.
  const content = read.value.toString().trim()
  const parsed = parseStatus(content)
  return parsed.ok ? { ...parsed, sha256: hash('sha256', content) } : parsed
}

function endsLikeAnObject(content: Buffer): boolean {
  return content.subarray(-1024).toString('latin1').trimEnd().endsWith('}')
}

/** Puts a fresh status.json in place, for a new attempt (S4.4). */
export function resetStatus(root: Directory): void {
  write(root, pendingStatus)
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
  replaceFile(root, STATUS_FILE, `${JSON.stringify(status, null, 2)}\n`, 0o644)
}
