import { hash } from 'node:crypto'
import type { Reader, Tx } from '../../store/store.ts'

/** A flag for moderators. Its id reveals neither the number of flags nor their time. */
interface GithubConduct {
  id: string
  repository: string
  number: number | null
  /** JSON of the protocol. */
  flag: string
  created_at: number
  closed_at: number | null
  closed_by: string | null
  decision: ConductDecision | null
  comment: string | null
}

type ConductDecision = 'upheld' | 'dismissed'

const CONDUCT = 'id, repository, number, flag, created_at, closed_at, closed_by, decision, comment'

/** A repeated flag replaces the earlier one until a moderator has decided. */
export async function insertConduct(
  tx: Tx,
  flag: Pick<GithubConduct, 'id' | 'repository' | 'number' | 'flag'>,
): Promise<void> {
  await tx.run(
    `INSERT INTO github_conduct (id, repository, number, flag, created_at) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET flag = excluded.flag WHERE github_conduct.closed_at IS NULL`,
    [...[flag.id, flag.repository, flag.number, flag.flag, tx.now]],
  )
}

export async function readConduct(
  reader: Reader,
  state: 'open' | 'all',
  limit: number,
): Promise<GithubConduct[]> {
  const where = state === 'open' ? 'WHERE closed_at IS NULL' : ''
  return await reader.all<GithubConduct>(
    `SELECT ${CONDUCT} FROM github_conduct ${where} ORDER BY created_at DESC, id LIMIT ?`,
    [limit],
  )
}

export async function closeConduct(
  tx: Tx,
  id: string,
  { by, decision, comment }: { by: string; decision: ConductDecision; comment: string | null },
): Promise<boolean> {
  const rows = await tx.all<{ id: string }>(
    `UPDATE github_conduct SET closed_at = ?, closed_by = ?, decision = ?, comment = ?
      WHERE id = ? AND closed_at IS NULL RETURNING id`,
    [tx.now, by, decision, comment, id],
  )
  return rows.length === 1
}

/** The number of flags in the version. */
const VERSIONED = 200

/** Changes when a flag is added, replaced or closed. */
export async function conductVersion(reader: Reader): Promise<string> {
  const counts = await reader.get('SELECT COUNT(*) AS flags, COUNT(closed_at) AS closed FROM github_conduct')
  const open = (await readConduct(reader, 'open', VERSIONED)).map(({ id, flag }) => [id, flag])
  return hash('sha256', JSON.stringify([counts, open]))
}

/** Whether moderators still have to be notified of a flag. */
export async function hasNewConduct(reader: Reader): Promise<boolean> {
  const row = await reader.get(
    'SELECT id FROM github_conduct WHERE told_at IS NULL AND closed_at IS NULL LIMIT 1',
  )
  return row !== undefined
}

/** A single notice covers all flags up to that time. */
export async function markConductNotified(tx: Tx, until: number): Promise<void> {
  await tx.run('UPDATE github_conduct SET told_at = ? WHERE told_at IS NULL AND created_at <= ?', [
    tx.now,
    until,
  ])
}
