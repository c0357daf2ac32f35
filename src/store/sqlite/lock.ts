import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { AppError } from '../../base/errors.ts'
import type { DaemonIdentity } from '../daemons.ts'
import { isBusy } from './fault.ts'

/** Offline commands hold the lock only briefly. */
const WAIT_MS = 1500

/**
 * Allows one daemon per store. The lock is an exclusive transaction on a small database beside the store. The kernel
 * releases it when the process ends for any reason, so no stale lock can remain.
 */
export function lockStore(file: string, identity: DaemonIdentity): { release(): void } {
  const lockFile = `${file}.lock`
  const holderFile = `${file}.holder`
  const lock = new DatabaseSync(lockFile, { timeout: WAIT_MS })
  try {
    lock.exec('PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE')
  } catch (error) {
    lock.close()
    if (!isBusy(error)) throw error
    throw new AppError('STORE_LOCKED', `Another daemon uses ${file}: ${describeHolder(holderFile)}`, {
      hint: 'Use that one, stop it, or give this one its own state folder (ORC_HOME).',
      cause: error,
    })
  }
  noteHolder(holderFile, identity)
  return { release: () => lock.close() }
}

/** Whether a daemon holds the store now. A starting daemon waits longer for the lock than this check takes. */
export function isStoreLocked(file: string): boolean {
  const lockFile = `${file}.lock`
  if (!existsSync(lockFile)) return false
  const lock = new DatabaseSync(lockFile, { readOnly: true, timeout: 0 })
  try {
    lock.prepare('SELECT 1 FROM sqlite_schema').get()
    return false
  } catch (error) {
    if (isBusy(error)) return true
    throw error
  } finally {
    lock.close()
  }
}

/** Only for the error of a second daemon, so a full disk must not fail here. */
function noteHolder(holderFile: string, { pid, address, host }: DaemonIdentity) {
  try {
    writeFileSync(holderFile, JSON.stringify({ pid, address, host }), { mode: 0o600 })
  } catch {
    // The error then can't name the holder.
  }
}

function describeHolder(holderFile: string): string {
  try {
    const holder = JSON.parse(readFileSync(holderFile, 'utf8')) as {
      pid: number
      address: string
      host: string
    }
    return `process ${holder.pid} on ${holder.host}${holder.address === '' ? '' : `, at ${holder.address}`}`
  } catch {
    return 'unknown process'
  }
}
