import { AppError } from '../base/errors.ts'
import { isRunning } from '../base/process.ts'
import type { Reader, Tx } from './store.ts'

/** A daemon's right to write. Each start takes a new epoch; transactions of older epochs are refused (fencing). */
export interface DaemonLease {
  daemon: string
  epoch: number
}

export interface DaemonIdentity {
  daemon: string
  address: string
  pid: number
  host: string
  leaseMs: number
}

interface DaemonRow {
  name: string
  epoch: number
  lease_until: number
  address: string
  pid: number
  host: string
}

/** @param exclusive a file lock or the like already keeps other daemons out, so a held lease doesn't matter */
export async function takeLease(tx: Tx, identity: DaemonIdentity, exclusive: boolean): Promise<DaemonLease> {
  const held = await findDaemon(tx, identity.daemon)
  if (held !== undefined && !exclusive && holds(held, tx.now) && !hasEnded(held, identity)) {
    throw nameTaken(identity, describeDaemon(held))
  }
  const before = held?.epoch ?? 0
  // If another daemon was faster, the epoch differs from the one read above, and no row comes back.
  const taken = await tx.get<{ epoch: number }>(
    `INSERT INTO daemons (name, epoch, lease_until, address, pid, host, started_at) VALUES (?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch, lease_until = excluded.lease_until,
       address = excluded.address, pid = excluded.pid, host = excluded.host, started_at = excluded.started_at
       WHERE daemons.epoch = ?
     RETURNING epoch`,
    [
      identity.daemon,
      before + 1,
      tx.now + identity.leaseMs,
      identity.address,
      identity.pid,
      identity.host,
      tx.now,
      before,
    ],
  )
  if (taken !== undefined) return { daemon: identity.daemon, epoch: taken.epoch }
  const holder = await findDaemon(tx, identity.daemon)
  throw nameTaken(identity, holder === undefined ? 'it has just started' : describeDaemon(holder))
}

/** @param epoch also require that the daemon hasn't restarted since */
export async function isDaemonUp(
  reader: Reader,
  daemon: string,
  now: number,
  epoch?: number,
): Promise<boolean> {
  const row = await findDaemon(reader, daemon)
  return row !== undefined && holds(row, now) && (epoch === undefined || row.epoch === epoch)
}

async function findDaemon(reader: Reader, daemon: string): Promise<DaemonRow | undefined> {
  return await reader.get<DaemonRow>('SELECT * FROM daemons WHERE name = ?', [daemon])
}

function holds(row: DaemonRow, now: number): boolean {
  return row.lease_until > now
}

/**
 * Skips waiting for the lease of a daemon that was killed on this host. If that is wrong (two containers with one host
 * name), fencing still lets only the newer one write.
 */
function hasEnded(row: DaemonRow, identity: DaemonIdentity): boolean {
  return row.host === identity.host && !isRunning(row.pid)
}

/** For the error of a second daemon. */
export function describeDaemon({
  pid,
  host,
  address,
}: Pick<DaemonIdentity, 'pid' | 'host' | 'address'>): string {
  return `process ${pid} on ${host}${address === '' ? '' : `, at ${address}`}`
}

function nameTaken(identity: DaemonIdentity, holder: string): AppError {
  return new AppError(
    'STORE_LOCKED',
    `Another daemon named "${identity.daemon}" uses this store: ${holder}`,
    {
      hint: `Use that one, stop it, or give this one another name. If it has died, its lease expires within ${Math.ceil(identity.leaseMs / 1000)} s.`,
    },
  )
}

export function renewLease(tx: Tx, lease: DaemonLease, leaseMs: number): void {
  tx.run('UPDATE daemons SET lease_until = ? WHERE name = ? AND epoch = ?', [
    tx.now + leaseMs,
    lease.daemon,
    lease.epoch,
  ])
}

export function releaseLease(tx: Tx, lease: DaemonLease): void {
  tx.run('UPDATE daemons SET lease_until = 0 WHERE name = ? AND epoch = ?', [lease.daemon, lease.epoch])
}

/** Runs first in every transaction: refuses to write once another daemon has taken over. */
export async function checkFence(tx: Tx, lease: DaemonLease): Promise<void> {
  // The lock keeps other daemons from taking over before the commit.
  const row = await tx.get<{ epoch: number }>(`SELECT epoch FROM daemons WHERE name = ? ${tx.lockShared}`, [
    lease.daemon,
  ])
  if (row?.epoch === lease.epoch) return
  throw new AppError('FENCED', `Another daemon took over the name "${lease.daemon}"`, {
    hint: 'Stop this daemon: it can no longer write.',
  })
}
