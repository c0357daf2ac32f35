import { AppError } from '../base/errors.ts'
import { isRunning } from '../base/process.ts'
import type { Reader, Tx } from './store.ts'

/** A daemon's right to write. Each start takes a new epoch; a transaction of an older one is refused (fencing). */
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

/** `exclusive`: something stronger than a lease, such as the lock of a file, already keeps others out. */
export async function takeLease(tx: Tx, identity: DaemonIdentity, exclusive: boolean): Promise<DaemonLease> {
  const held = await findDaemon(tx, identity.daemon)
  if (held !== undefined && !exclusive && holds(held, tx.now) && !hasEnded(held, identity)) {
    throw nameTaken(identity, describe(held))
  }
  const before = held?.epoch ?? 0
  // If another one was quicker, the epoch is no longer the one read above, and no row comes back.
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
  throw nameTaken(identity, (await leaseHolder(tx, identity.daemon, tx.now)) ?? 'it was just started')
}

/** Who holds a daemon's name right now, for the message to whoever comes second. */
export async function leaseHolder(reader: Reader, daemon: string, now: number): Promise<string | undefined> {
  const row = await findDaemon(reader, daemon)
  return row !== undefined && holds(row, now) ? describe(row) : undefined
}

/** `epoch`: and was not started again since. */
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
 * A daemon that was killed on this host need not be waited for. Should this ever be wrong (two containers with
 * one host name), the fence still lets only the newer one write.
 */
function hasEnded(row: DaemonRow, identity: DaemonIdentity): boolean {
  return row.host === identity.host && !isRunning(row.pid)
}

function describe(row: DaemonRow): string {
  return `process ${row.pid} on ${row.host}${row.address === '' ? '' : `, at ${row.address}`}`
}

function nameTaken(identity: DaemonIdentity, holder: string): AppError {
  return new AppError('STORE_LOCKED', `Another daemon is named "${identity.daemon}" here: ${holder}`, {
    hint: `Talk to that one, give this one another name, or stop that one first. Should it have died, its lease runs out in ${Math.ceil(identity.leaseMs / 1000)} s at most.`,
  })
}

export async function renewLease(tx: Tx, lease: DaemonLease, leaseMs: number): Promise<void> {
  await tx.run('UPDATE daemons SET lease_until = ? WHERE name = ? AND epoch = ?', [
    tx.now + leaseMs,
    lease.daemon,
    lease.epoch,
  ])
}

export async function releaseLease(tx: Tx, lease: DaemonLease): Promise<void> {
  await tx.run('UPDATE daemons SET lease_until = 0 WHERE name = ? AND epoch = ?', [lease.daemon, lease.epoch])
}

/** The first thing in every transaction: am I still the one? */
export async function checkFence(tx: Tx, lease: DaemonLease): Promise<void> {
  // Locked, so that nobody can take over between this look and the commit.
  const row = await tx.get<{ epoch: number }>(`SELECT epoch FROM daemons WHERE name = ? ${tx.lockShared}`, [
    lease.daemon,
  ])
  if (row?.epoch === lease.epoch) return
  throw new AppError('FENCED', `Another daemon took over the name "${lease.daemon}"`, {
    hint: 'Stop this one: it can no longer write.',
  })
}
