import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { AppError } from '../../base/errors.ts'
import type { DaemonIdentity } from '../daemons.ts'
import { isBusy } from './fault.ts'

/** A command that works on the store while no service runs holds the lock for a moment only. */
const WAIT_MS = 1500

/**
 * At most one daemon per store. The lock is an exclusive transaction on a small database beside the store:
 * the kernel holds it and lets go when the process ends, however it ends, so that no stale lock can remain.
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
      hint: 'Talk to that one, stop it first, or give this one a state folder of its own (ORC_HOME).',
      cause: error,
    })
  }
  noteHolder(holderFile, identity)
  return { release: () => lock.close() }
}

/** Whether a daemon has the store now. To ask keeps nobody from taking it: that waits longer than this takes. */
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

/** Only for the message to a second daemon, so a full disk is no reason to fail here. */
function noteHolder(holderFile: string, { pid, address, host }: DaemonIdentity) {
  try {
    writeFileSync(holderFile, JSON.stringify({ pid, address, host }), { mode: 0o600 })
  } catch {
    // Then nobody is named.
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
    return 'its process is not known'
  }
}
