import { AppError } from '../model/errors.ts'
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

export async function takeLease(tx: Tx, identity: DaemonIdentity): Promise<DaemonLease> {
  const held = await tx.get<DaemonRow>('SELECT * FROM daemons WHERE name = ?', [identity.daemon])
  const epoch = (held?.epoch ?? 0) + 1
  await tx.run(
    `INSERT INTO daemons (name, epoch, lease_until, address, pid, host, started_at) VALUES (?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch, lease_until = excluded.lease_until,
       address = excluded.address, pid = excluded.pid, host = excluded.host, started_at = excluded.started_at`,
    [
      identity.daemon,
      epoch,
      tx.now + identity.leaseMs,
      identity.address,
      identity.pid,
      identity.host,
      tx.now,
    ],
  )
  return { daemon: identity.daemon, epoch }
}

/** Who holds a daemon's name right now, for the message to whoever comes second. */
export async function leaseHolder(reader: Reader, daemon: string, now: number): Promise<string | undefined> {
  const row = await reader.get<DaemonRow>('SELECT * FROM daemons WHERE name = ?', [daemon])
  if (row === undefined || row.lease_until <= now) return undefined
  return `process ${row.pid} on ${row.host}`
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
  const row = await tx.get<{ epoch: number }>(`SELECT epoch FROM daemons WHERE name = ?`, [lease.daemon])
  if (row?.epoch === lease.epoch) return
  throw new AppError('FENCED', `Another daemon took over the name "${lease.daemon}"`, {
    hint: 'Stop this one: it can no longer write.',
  })
}

/**
 * An agent belongs to the daemon that started it. Taking one over needs its owner's lease to have run out;
 * the owner's epoch is kept with it, so that a returning owner notices.
 */
export async function claimAgent(tx: Tx, lease: DaemonLease, agent: string): Promise<boolean> {
  const rows = await tx.all<{ name: string }>(
    `UPDATE agents SET owner = ?, owner_epoch = ? WHERE name = ? AND (
       owner IS NULL OR owner = ? OR NOT EXISTS (
         SELECT 1 FROM daemons WHERE daemons.name = agents.owner AND daemons.epoch = agents.owner_epoch
           AND daemons.lease_until > ?))
     RETURNING name`,
    [lease.daemon, lease.epoch, agent, lease.daemon, tx.now],
  )
  return rows.length === 1
}
