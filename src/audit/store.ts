import type { Store } from '../store/store.ts'
import type { AuditClass, AuditEntry } from './entry.ts'

export interface AuditRow {
  chain: string
  seq: number
  at: number
  type: string
  class: AuditClass
  actor: string
  subject: string | null
  text: string
  confidence: number | null
  data: string
  hash: string
}

export interface AuditQuery {
  /** Only entries after this sequence number. */
  after?: number | undefined
  since?: number | undefined
  until?: number | undefined
  /** Entries with this agent as actor or subject. */
  agent?: string | undefined
  /** Together with `agent`: entries between the two. */
  with?: string | undefined
  type?: string | undefined
  class?: AuditClass | undefined
  text?: string | undefined
  /** Restricts to what this reader may see: public entries and those it is a party to. */
  visibleTo?: string | undefined
  limit?: number | undefined
  /** Select the newest `limit` entries instead of the oldest. They are still returned oldest first. */
  newest?: boolean | undefined
}

function conditions(chain: string, query: AuditQuery): { where: string; params: (string | number)[] } {
  const parts = ['chain = ?']
  const params: (string | number)[] = [chain]
  const add = (sql: string, ...values: (string | number)[]) => {
    parts.push(sql)
    params.push(...values)
  }
  if (query.after !== undefined) add('seq > ?', query.after)
  // Times grow with sequence numbers: converting a time into a number avoids scanning every entry.
  if (query.since !== undefined) add(`seq >= ${firstFrom('>=')}`, chain, query.since)
  if (query.until !== undefined) add(`seq < ${firstFrom('>')}`, chain, query.until)
  if (query.agent !== undefined && query.with !== undefined) {
    add(
      '((actor = ? AND subject = ?) OR (actor = ? AND subject = ?))',
      query.agent,
      query.with,
      query.with,
      query.agent,
    )
  } else if (query.agent !== undefined) {
    add('(actor = ? OR subject = ?)', query.agent, query.agent)
  }
  if (query.type !== undefined) {
    // `message` means every `message.…`.
    if (query.type.includes('.')) add('type = ?', query.type)
    else add(`type LIKE ? ESCAPE '\\'`, `${escapeLike(query.type)}.%`)
  }
  if (query.class !== undefined) add('class = ?', query.class)
  if (query.text !== undefined) {
    // The database lowers both sides, because it lowers fewer letters than JavaScript.
    const pattern = `%${escapeLike(query.text)}%`
    add(`(LOWER(text) LIKE LOWER(?) ESCAPE '\\' OR LOWER(data) LIKE LOWER(?) ESCAPE '\\')`, pattern, pattern)
  }
  if (query.visibleTo !== undefined) {
    add(
      `(class = 'public' OR (class = 'internal' AND (actor = ? OR subject = ?)))`,
      query.visibleTo,
      query.visibleTo,
    )
  }
  return { where: parts.join(' AND '), params }
}

function firstFrom(comparison: '>=' | '>'): string {
  const first = `SELECT seq FROM audit WHERE chain = ? AND at ${comparison} ? ORDER BY at, seq LIMIT 1`
  return `COALESCE((${first}), ${Number.MAX_SAFE_INTEGER})`
}

function escapeLike(text: string): string {
  return text.replace(/[\\%_]/g, (character) => `\\${character}`)
}

/** Streams entries, oldest first: the log may be far larger than memory. */
export function streamAudit(store: Store, query: AuditQuery): AsyncIterable<AuditRow> {
  const { where, params } = conditions(store.daemon, query)
  const { limit } = query
  const all = `SELECT * FROM audit WHERE ${where} ORDER BY seq`
  if (limit === undefined) return store.stream<AuditRow>(all, params)
  const sql = query.newest ? `SELECT * FROM (${all} DESC LIMIT ?) AS newest ORDER BY seq` : `${all} LIMIT ?`
  return store.stream<AuditRow>(sql, [...params, limit])
}

/** The entries of a task tree, oldest first, with the halts and resumes since it began. */
export async function readTree(
  store: Pick<Store, 'daemon' | 'all'>,
  root: number,
  { after, limit }: { after: number; limit: number },
): Promise<ReadEntry[]> {
  const { daemon } = store
  const rows = await store.all<AuditRow>(
    `SELECT * FROM (
       SELECT * FROM (SELECT * FROM audit WHERE root = ? AND chain = ? AND seq > ? ORDER BY seq LIMIT ?) AS said
       UNION ALL
       SELECT * FROM (SELECT * FROM audit
         WHERE type IN ('team.halted', 'team.resumed') AND chain = ? AND seq > ?
           AND seq > (SELECT MIN(seq) FROM audit WHERE root = ? AND chain = ?) ORDER BY seq LIMIT ?) AS halts
     ) AS found ORDER BY seq LIMIT ?`,
    [root, daemon, after, limit, daemon, after, root, daemon, limit, limit],
  )
  return rows.map(toEntry)
}

/** The entries of a run, oldest first. */
export async function readRunEntries(
  store: Pick<Store, 'daemon' | 'all'>,
  run: number,
  { after, limit }: { after: number; limit: number },
): Promise<ReadEntry[]> {
  const rows = await store.all<AuditRow>(
    'SELECT * FROM audit WHERE run = ? AND chain = ? AND seq > ? ORDER BY seq LIMIT ?',
    [run, store.daemon, after, limit],
  )
  return rows.map(toEntry)
}

/** The sequence number of the run's newest entry of that type, or 0. */
export async function lastOfRun(
  store: Pick<Store, 'daemon' | 'get'>,
  run: number,
  type: string,
): Promise<number> {
  const row = await store.get<{ seq: number }>(
    'SELECT seq FROM audit WHERE run = ? AND chain = ? AND type = ? ORDER BY seq DESC LIMIT 1',
    [run, store.daemon, type],
  )
  return row?.seq ?? 0
}

/** `prev` isn't stored: it is the hash of the previous entry. */
export type ReadEntry = Omit<AuditEntry, 'prev'>

/** The latest time that a Date can represent. */
const LATEST = 8.64e15

/** Shows a damaged entry instead of failing; verification reports it. */
function readData(json: string): Record<string, unknown> {
  try {
    return JSON.parse(json) as Record<string, unknown>
  } catch {
    return { damaged: json.slice(0, 200) }
  }
}

export function toEntry(row: AuditRow): ReadEntry {
  const entry: ReadEntry = {
    chain: row.chain,
    seq: row.seq,
    at: new Date(Math.min(row.at, LATEST)).toISOString(),
    type: row.type,
    class: row.class,
    actor: row.actor,
    text: row.text,
    hash: row.hash,
    data: readData(row.data),
  }
  if (row.subject !== null) entry.subject = row.subject
  if (row.confidence !== null) entry.confidence = row.confidence
  return entry
}
