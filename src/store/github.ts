import type { Reader, Store, Tx } from './store.ts'

/** A webhook that GitHub sent. Its id stays for good, so that it is worked on once (C25); its text until it was. */
export interface GithubDelivery {
  id: string
  event: string
  payload: string
  attempts: number
  received_at: number
}

/** False: it was there before. */
export async function keepDelivery(
  tx: Tx,
  { id, event, payload }: Pick<GithubDelivery, 'id' | 'event' | 'payload'>,
): Promise<boolean> {
  const rows = await tx.all<{ id: string }>(
    `INSERT INTO github_deliveries (id, event, payload, state, not_before, received_at) VALUES (?, ?, ?, 'waiting', ?, ?)
     ON CONFLICT (id) DO NOTHING RETURNING id`,
    [id, event, payload, tx.now, tx.now],
  )
  return rows.length === 1
}

export async function nextDelivery(reader: Reader, now: number): Promise<GithubDelivery | undefined> {
  return await reader.get<GithubDelivery>(
    `SELECT id, event, payload, attempts, received_at FROM github_deliveries WHERE state = 'waiting' AND not_before <= ?
      ORDER BY received_at, id LIMIT 1`,
    [now],
  )
}

/** When the next one is due, of those that were put off. */
export async function nextDeliveryDue(reader: Reader): Promise<number | undefined> {
  const row = await reader.get<{ due: number | null }>(
    `SELECT MIN(not_before) AS due FROM github_deliveries WHERE state = 'waiting'`,
  )
  return row?.due ?? undefined
}

/** Worked on, or not to be worked on. False if somebody else was first. */
export async function endDelivery(
  tx: Tx,
  id: string,
  state: 'routed' | 'ignored' | 'failed',
  note: string | null,
): Promise<boolean> {
  const rows = await tx.all<{ id: string }>(
    `UPDATE github_deliveries SET state = ?, note = ?, payload = '' WHERE id = ? AND state = 'waiting' RETURNING id`,
    [state, note, id],
  )
  return rows.length === 1
}

export async function putOffDelivery(tx: Tx, id: string, until: number, note: string): Promise<void> {
  await tx.run(
    `UPDATE github_deliveries SET attempts = attempts + 1, not_before = ?, note = ? WHERE id = ? AND state = 'waiting'`,
    [until, note, id],
  )
}

/** Since when webhooks are taken: from the first start on, or the first webhook where that is not known. */
export async function takenSince(tx: Tx): Promise<number> {
  await tx.run(
    `INSERT INTO github_since (id, at) SELECT 1, COALESCE(MIN(received_at), ?) FROM github_deliveries WHERE true
     ON CONFLICT (id) DO NOTHING`,
    [tx.now],
  )
  return (await tx.get<{ at: number }>('SELECT at FROM github_since WHERE id = 1'))!.at
}

/** Which of these never came. */
export async function unknownDeliveries(reader: Reader, ids: readonly string[]): Promise<string[]> {
  const unknown: string[] = []
  for (const id of ids) {
    const row = await reader.get('SELECT id FROM github_deliveries WHERE id = ?', [id])
    if (row === undefined) unknown.push(id)
  }
  return unknown
}

/** One agent's part in what an event set in motion. */
export interface GithubWork {
  /** `DELIVERY/ROLE`: each role once for each event. */
  id: string
  delivery: string
  role: string
  agent: string
  repository: string
  number: number | null
  /** `waiting` for the work that it comes after. */
  state: 'waiting' | 'delegated' | 'done' | 'failed' | 'skipped'
  task: number | null
  after: string | null
  /** Which end of that it needs. */
  needs: 'success' | 'failure' | 'any'
  delegation: string
  /** How often it was tried again. */
  attempts: number
}

const WORK = 'id, delivery, role, agent, repository, number, state, task, after, needs, delegation, attempts'

export async function insertWork(tx: Tx, work: GithubWork): Promise<void> {
  await tx.run(
    `INSERT INTO github_work (${WORK}, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      ...[work.id, work.delivery, work.role, work.agent, work.repository, work.number, work.state, work.task],
      ...[work.after, work.needs, work.delegation, work.attempts, tx.now],
    ],
  )
}

export async function beginWork(tx: Tx, id: string, task: number): Promise<void> {
  await tx.run(`UPDATE github_work SET state = 'delegated', task = ? WHERE id = ?`, [task, id])
}

/** False if it had ended before: what it came to counts once. */
export async function endWork(tx: Tx, id: string, state: 'done' | 'failed' | 'skipped'): Promise<boolean> {
  const rows = await tx.all<{ id: string }>(
    'UPDATE github_work SET state = ?, ended_at = ? WHERE id = ? AND ended_at IS NULL RETURNING id',
    [state, tx.now, id],
  )
  return rows.length === 1
}

/** It waits for its next attempt. False if it has ended. */
export async function putOffWork(tx: Tx, id: string): Promise<boolean> {
  const rows = await tx.all<{ id: string }>(
    `UPDATE github_work SET state = 'waiting', task = NULL, attempts = attempts + 1
      WHERE id = ? AND ended_at IS NULL AND task IS NOT NULL RETURNING id`,
    [id],
  )
  return rows.length === 1
}

export async function findWork(reader: Reader, id: string): Promise<GithubWork | undefined> {
  return await reader.get<GithubWork>(`SELECT ${WORK} FROM github_work WHERE id = ?`, [id])
}

export async function workOfTask(reader: Reader, task: number): Promise<GithubWork | undefined> {
  return await reader.get<GithubWork>(`SELECT ${WORK} FROM github_work WHERE task = ?`, [task])
}

export async function openWork(reader: Reader): Promise<GithubWork[]> {
  return await reader.all<GithubWork>(
    `SELECT ${WORK} FROM github_work WHERE ended_at IS NULL AND task IS NOT NULL ORDER BY id`,
  )
}

export async function workAfter(reader: Reader, delivery: string, role: string): Promise<GithubWork[]> {
  return await reader.all<GithubWork>(
    `SELECT ${WORK} FROM github_work WHERE delivery = ? AND after = ? AND state = 'waiting' ORDER BY id`,
    [delivery, role],
  )
}

/** What an agent proposed. */
export interface GithubAction {
  key: string
  work: string
  agent: string
  repository: string
  number: number | null
  /** JSON. */
  action: string
  confidence: number | null
  rationale: string
  /**
   * `asked`: people decide. `ready`: to be done. `acting`: the call goes out, or went out before a crash. The others
   * are ends.
   */
  state: 'asked' | 'ready' | 'acting' | 'done' | 'failed' | 'stale' | 'refused' | 'dry'
  request: number | null
  attempts: number
  url: string | null
  note: string | null
  created_at: number
}

const ACTION =
  'key, work, agent, repository, number, action, confidence, rationale, state, request, attempts, url, note, created_at'

/** False: the same was proposed before. */
export async function insertAction(
  tx: Tx,
  action: Omit<GithubAction, 'attempts' | 'url' | 'created_at'>,
): Promise<boolean> {
  const rows = await tx.all<{ key: string }>(
    `INSERT INTO github_actions (key, work, agent, repository, number, action, confidence, rationale, state, request, note,
       not_before, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (key) DO NOTHING RETURNING key`,
    [
      ...[action.key, action.work, action.agent, action.repository, action.number, action.action],
      ...[action.confidence, action.rationale, action.state, action.request, action.note],
      ...[tx.now, tx.now, tx.now],
    ],
  )
  return rows.length === 1
}

export async function findAction(reader: Reader, key: string): Promise<GithubAction | undefined> {
  return await reader.get<GithubAction>(`SELECT ${ACTION} FROM github_actions WHERE key = ?`, [key])
}

export async function nextAction(reader: Reader, now: number): Promise<GithubAction | undefined> {
  return await reader.get<GithubAction>(
    `SELECT ${ACTION} FROM github_actions WHERE state IN ('ready', 'acting') AND not_before <= ?
      ORDER BY not_before, key LIMIT 1`,
    [now],
  )
}

export async function nextActionDue(reader: Reader): Promise<number | undefined> {
  const row = await reader.get<{ due: number | null }>(
    `SELECT MIN(not_before) AS due FROM github_actions WHERE state IN ('ready', 'acting')`,
  )
  return row?.due ?? undefined
}

export interface ActionChange {
  state: GithubAction['state']
  action?: string
  /** Of the thread, where people changed it. */
  number?: number
  request?: number
  url?: string | undefined
  note?: string
  notBefore?: number
  attempts?: number
}

export async function changeAction(tx: Tx, key: string, change: ActionChange): Promise<void> {
  await tx.run(
    `UPDATE github_actions SET state = ?, action = COALESCE(?, action), number = COALESCE(?, number),
       request = COALESCE(?, request), url = COALESCE(?, url), note = COALESCE(?, note), not_before = COALESCE(?, not_before),
       attempts = COALESCE(?, attempts), updated_at = ? WHERE key = ?`,
    [
      ...[
        change.state,
        change.action ?? null,
        change.number ?? null,
        change.request ?? null,
        change.url ?? null,
        change.note ?? null,
      ],
      ...[change.notBefore ?? null, change.attempts ?? null, tx.now, key],
    ],
  )
}

/** Requests about proposals that people settled, of which the proposals do not know yet. */
export async function settledQuestions(reader: Reader): Promise<number[]> {
  const rows = await reader.all<{ request: number }>(
    `SELECT a.request FROM github_actions a JOIN human_requests r ON r.id = a.request
      WHERE a.state = 'asked' AND r.state <> 'open' ORDER BY a.request`,
  )
  return rows.map(({ request }) => request)
}

/** An agent's failures in a row. */
export async function readStanding(
  reader: Reader,
  agent: string,
): Promise<{ failures: number; halted: boolean }> {
  const row = await reader.get<{ failures: number; halted_at: number | null }>(
    'SELECT failures, halted_at FROM github_standing WHERE agent = ?',
    [agent],
  )
  return { failures: row?.failures ?? 0, halted: (row?.halted_at ?? null) !== null }
}

export async function keepStanding(
  tx: Tx,
  agent: string,
  { failures, halted }: { failures: number; halted: boolean },
): Promise<void> {
  await tx.run(
    `INSERT INTO github_standing (agent, failures, halted_at) VALUES (?, ?, ?)
     ON CONFLICT (agent) DO UPDATE SET failures = excluded.failures,
       halted_at = CASE WHEN excluded.halted_at IS NULL THEN NULL ELSE COALESCE(github_standing.halted_at, excluded.halted_at) END`,
    [agent, failures, halted ? tx.now : null],
  )
}

/** What the repository has shown us: an issue, a pull request, a comment. */
export interface GithubDocument {
  repository: string
  kind: string
  number: number
  /** Empty for the thread itself, else the comment's id. */
  part: string
  title: string
  body: string
  author: string
  state: string
  /** When it was so, by GitHub's clock: what comes late does not take the place of what is newer. */
  at: number
}

const LONGEST = 20_000

export async function keepDocument(tx: Tx, document: GithubDocument): Promise<void> {
  // PostgreSQL takes no NUL.
  const plain = (text: string) => text.toWellFormed().replaceAll('\0', '').slice(0, LONGEST).toWellFormed()
  await tx.run(
    `INSERT INTO github_documents (repository, kind, number, part, title, body, author, state, updated_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (repository, number, part) DO UPDATE SET kind = excluded.kind, title = excluded.title,
       body = excluded.body, author = excluded.author, state = excluded.state, updated_at = excluded.updated_at
       WHERE excluded.updated_at >= github_documents.updated_at`,
    [
      ...[document.repository, document.kind, document.number, document.part],
      ...[plain(document.title), plain(document.body), document.author, document.state, document.at],
    ],
  )
}

export async function forgetDocuments(
  tx: Tx,
  repository: string,
  number: number,
  part?: string,
): Promise<void> {
  const only = part === undefined ? '' : ' AND part = ?'
  await tx.run(`DELETE FROM github_documents WHERE repository = ? AND number = ?${only}`, [
    ...[repository, number, ...(part === undefined ? [] : [part])],
  ])
}

export interface Related {
  kind: string
  number: number
  title: string
  state: string
  /** The beginning of what fits. */
  body: string
}

/** Threads that speak of the same, the closest first. `words`: letters and digits only. */
export async function searchDocuments(
  store: Pick<Store, 'engine' | 'all'>,
  {
    repository,
    words,
    except,
    limit,
  }: { repository: string; words: readonly string[]; except: number; limit: number },
): Promise<Related[]> {
  if (words.length === 0) return []
  const found =
    store.engine === 'sqlite'
      ? await store.all<Related>(SEARCH_SQLITE, [
          words.map((word) => `"${word}"`).join(' OR '),
          repository,
          except,
        ])
      : await store.all<Related>(SEARCH_POSTGRES, [words.join(' | '), repository, except])
  const threads = new Map<number, Related>()
  for (const one of found) if (!threads.has(one.number)) threads.set(one.number, one)
  return [...threads.values()].slice(0, limit)
}

/** More than are asked for, since several may be of one thread. */
const SEARCH_SQLITE = `SELECT d.kind, d.number, d.title, d.state, substr(d.body, 1, 600) AS body FROM github_search
  JOIN github_documents d ON d.id = github_search.rowid
  WHERE github_search MATCH ? AND d.repository = ? AND d.number <> ? ORDER BY bm25(github_search, 4.0, 1.0), d.number LIMIT 50`

const SEARCH_POSTGRES = `SELECT d.kind, d.number, d.title, d.state, substr(d.body, 1, 600) AS body FROM github_documents d, to_tsquery('english', ?) AS wanted
  WHERE d.words @@ wanted AND d.repository = ? AND d.number <> ? ORDER BY ts_rank(d.words, wanted) DESC, d.number LIMIT 50`

/** A flag for moderators. Its id tells nothing of how many there are, or when. */
export interface GithubConduct {
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

export type ConductDecision = 'upheld' | 'dismissed'

const CONDUCT = 'id, repository, number, flag, created_at, closed_at, closed_by, decision, comment'

/** The same flag again takes its place, as long as nobody has decided. */
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

/** Whether there are flags that moderators were not told of yet. */
export async function hasUntoldConduct(reader: Reader): Promise<boolean> {
  const row = await reader.get(
    'SELECT id FROM github_conduct WHERE told_at IS NULL AND closed_at IS NULL LIMIT 1',
  )
  return row !== undefined
}

/** All there are by now: one word calls people for all of them. */
export async function conductTold(tx: Tx, until: number): Promise<void> {
  await tx.run('UPDATE github_conduct SET told_at = ? WHERE told_at IS NULL AND created_at <= ?', [
    tx.now,
    until,
  ])
}

/** What became of a delivery. */
export async function readDelivery(
  reader: Reader,
  id: string,
): Promise<
  { id: string; event: string; state: string; note: string | null; received_at: number } | undefined
> {
  return await reader.get('SELECT id, event, state, note, received_at FROM github_deliveries WHERE id = ?', [
    id,
  ])
}

export async function workOfDelivery(reader: Reader, delivery: string): Promise<GithubWork[]> {
  return await reader.all<GithubWork>(
    `SELECT ${WORK} FROM github_work WHERE delivery = ? ORDER BY created_at, id`,
    [delivery],
  )
}

/** What was proposed, asked and said because of a delivery: all whose work begins with its id and a slash. */
export async function actionsOfDelivery(reader: Reader, delivery: string): Promise<GithubAction[]> {
  return await reader.all<GithubAction>(
    `SELECT ${ACTION} FROM github_actions WHERE work >= ? AND work < ? ORDER BY created_at, key`,
    // The character after the slash.
    [`${delivery}/`, `${delivery}0`],
  )
}

export interface WorkFigures {
  agent: string
  /** Ended well or badly since that time. */
  done: number
  failed: number
  average_ms: number | null
}

export async function readWorkFigures(reader: Reader, since: number): Promise<WorkFigures[]> {
  return await reader.all<WorkFigures>(
    `SELECT agent, SUM(CASE WHEN state = 'done' THEN 1 ELSE 0 END) AS done,
       SUM(CASE WHEN state = 'failed' THEN 1 ELSE 0 END) AS failed, AVG(ended_at - created_at) AS average_ms
      FROM github_work WHERE ended_at > ? AND state IN ('done', 'failed') GROUP BY agent`,
    [since],
  )
}

/** When an agent last did what it was asked. */
export async function lastDoneAt(reader: Reader, agent: string): Promise<number | undefined> {
  const row = await reader.get<{ at: number | null }>(
    `SELECT MAX(ended_at) AS at FROM github_work WHERE agent = ? AND state = 'done'`,
    [agent],
  )
  return row?.at ?? undefined
}

/** How sure agents were of what they proposed since that time. */
export async function readConfidences(
  reader: Reader,
  since: number,
): Promise<{ agent: string; average: number }[]> {
  return await reader.all(
    `SELECT agent, AVG(confidence) AS average FROM github_actions
      WHERE created_at > ? AND confidence IS NOT NULL GROUP BY agent`,
    [since],
  )
}

/** Work that was given so long ago that something must be wrong. */
export async function readOverdue(
  reader: Reader,
  before: number,
): Promise<{ agent: string; count: number }[]> {
  return await reader.all(
    `SELECT agent, COUNT(*) AS count FROM github_work WHERE ended_at IS NULL AND task IS NOT NULL AND created_at < ?
      GROUP BY agent`,
    [before],
  )
}

export async function countWaiting(reader: Reader): Promise<{ events: number; actions: number }> {
  const row = await reader.get<{ events: number; actions: number }>(
    `SELECT (SELECT COUNT(*) FROM github_deliveries WHERE state = 'waiting') AS events,
       (SELECT COUNT(*) FROM github_actions WHERE state IN ('ready', 'acting')) AS actions`,
  )
  return row ?? { events: 0, actions: 0 }
}

/** When GitHub, or the clock, last set something in motion. */
export async function latestDeliveryAt(reader: Reader): Promise<number | undefined> {
  const row = await reader.get<{ at: number | null }>('SELECT MAX(received_at) AS at FROM github_deliveries')
  return row?.at ?? undefined
}

/** What an agent has to do. */
export async function openWorkOf(reader: Reader, agent: string): Promise<GithubWork[]> {
  return await reader.all<GithubWork>(
    `SELECT ${WORK} FROM github_work WHERE ended_at IS NULL AND task IS NOT NULL AND agent = ? ORDER BY created_at, id`,
    [agent],
  )
}

/** The newest work of an agent, about that thread where one is named. */
export async function latestWorkAbout(
  reader: Reader,
  agent: string,
  number: number | undefined,
): Promise<GithubWork | undefined> {
  const about = number === undefined ? '' : ' AND number = ?'
  return await reader.get<GithubWork>(
    `SELECT ${WORK} FROM github_work WHERE agent = ?${about} ORDER BY created_at DESC, id LIMIT 1`,
    [agent, ...(number === undefined ? [] : [number])],
  )
}

/** How each agent was when it was last written down, since then. */
export async function lastToldHealth(
  reader: Reader,
  since: number,
): Promise<{ agent: string; status: 'healthy' | 'degraded' | 'error' }[]> {
  const rows = await reader.all<{ actor: string; data: string }>(
    `SELECT actor, data FROM audit WHERE at >= ? AND type = 'github.health' ORDER BY seq DESC LIMIT 500`,
    [since],
  )
  const latest = new Map<string, 'healthy' | 'degraded' | 'error'>()
  for (const { actor, data } of rows) {
    const { status } = JSON.parse(data) as { status?: unknown }
    const is = status === 'degraded' || status === 'error' ? status : 'healthy'
    if (!latest.has(actor)) latest.set(actor, is)
  }
  return [...latest].map(([agent, status]) => ({ agent, status }))
}
