import { formatId, parseId } from '../base/ids.ts'
import type { Reader, Tx } from '../store/store.ts'
import { nextTimerOf } from './core/events-and-effects.ts'
import { reviewerOf, type Task, type TaskState } from './task.ts'

interface TaskRow {
  document: string
}

/** The document is the task; the other columns are for queries. */
export function insertTask(tx: Tx, task: Task): void {
  tx.run(
    `INSERT INTO tasks (id, parent, root, delegator, agent, state, document, created_at, ended_at, due_at, updated_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      keyOf(task.id),
      task.parent === null ? null : keyOf(task.parent),
      keyOf(task.root),
      task.delegator,
      task.agent,
      task.state,
      writeTask(task),
      task.createdAt,
      task.endedAt,
      nextTimerOf(task) ?? null,
      tx.now,
    ],
  )
}

/** Writes `reviewer` and `interrupting` only if they changed, because each has an index to update. */
export function updateTask(tx: Tx, before: Task, task: Task): void {
  const key = keyOf(task.id)
  tx.run('UPDATE tasks SET state = ?, document = ?, ended_at = ?, due_at = ?, updated_at = ? WHERE id = ?', [
    task.state,
    writeTask(task),
    task.endedAt,
    nextTimerOf(task) ?? null,
    tx.now,
    key,
  ])
  const reviewer = reviewerOf(task)
  if (task.interrupting !== before.interrupting || reviewer !== reviewerOf(before)) {
    tx.run('UPDATE tasks SET reviewer = ?, interrupting = ? WHERE id = ?', [
      reviewer,
      task.interrupting ? 1 : 0,
      key,
    ])
  }
}

/** Overrides when the task's timer fires, until the task changes. */
export function setTaskDue(tx: Tx, id: string, at: number): void {
  tx.run('UPDATE tasks SET due_at = ? WHERE id = ?', [at, keyOf(id)])
}

/** When the task's timer fires. */
export async function taskDue(reader: Reader, id: string): Promise<number | undefined> {
  const row = await reader.get<{ due_at: number | null }>('SELECT due_at FROM tasks WHERE id = ?', [
    keyOf(id),
  ])
  return row?.due_at ?? undefined
}

export async function findTask(reader: Reader, id: string): Promise<Task | undefined> {
  const key = parseId('task', id)
  if (key === undefined) return undefined
  const row = await reader.get<TaskRow>('SELECT document FROM tasks WHERE id = ?', [key])
  return row === undefined ? undefined : read(row)
}

/** Locks the row, so no other daemon changes the task meanwhile. */
export async function lockTask(tx: Tx, id: string): Promise<Task | undefined> {
  const key = parseId('task', id)
  if (key === undefined) return undefined
  const row = await tx.get<TaskRow>(`SELECT document FROM tasks WHERE id = ? ${tx.lockRow}`, [key])
  return row === undefined ? undefined : read(row)
}

export async function childrenOf(reader: Reader, id: string): Promise<Task[]> {
  const rows = await reader.all<TaskRow>('SELECT document FROM tasks WHERE parent = ? ORDER BY id', [
    keyOf(id),
  ])
  return rows.map(read)
}

/** The index on `root` covers tasks with a parent only, so the root is found by its id. */
const IN_TREE = 'id = ? OR (root = ? AND parent IS NOT NULL)'

/** A whole tree, oldest task first. */
export async function treeOf(reader: Reader, root: string): Promise<Task[]> {
  const key = keyOf(root)
  const rows = await reader.all<TaskRow>(`SELECT document FROM tasks WHERE ${IN_TREE} ORDER BY id`, [
    key,
    key,
  ])
  return rows.map(read)
}

/** Parents and parties of a tree; parents come before their children. */
export async function outlineOf(
  reader: Reader,
  root: number,
): Promise<{ id: number; parent: number | null; delegator: string; agent: string }[]> {
  return await reader.all(`SELECT id, parent, delegator, agent FROM tasks WHERE ${IN_TREE} ORDER BY id`, [
    root,
    root,
  ])
}

/** The open tasks of an agent, oldest first. */
export async function openTasksOf(reader: Reader, agent: string): Promise<Task[]> {
  const rows = await reader.all<TaskRow>(
    'SELECT document FROM tasks WHERE agent = ? AND ended_at IS NULL ORDER BY id',
    [agent],
  )
  return rows.map(read)
}

const PAGE = 50
/** A statement for each number of excluded states, so statements stay cached. */
const openPage = (excluded: number) => `SELECT id, document FROM tasks
  WHERE agent = ? AND ended_at IS NULL ${excluded === 0 ? '' : `AND state NOT IN (${Array(excluded).fill('?').join(', ')})`} AND id > ?
  ORDER BY id LIMIT ${PAGE}`
const OPEN_PAGE = openPage(0)

/**
 * The oldest `most` open tasks of an agent that fit, without those in excluded states. Reads page by page, because an
 * agent may have thousands.
 */
export async function firstOpen(
  reader: Reader,
  agent: string,
  fits: (task: Task) => boolean,
  most: number,
  excluded: readonly TaskState[] = [],
): Promise<Task[]> {
  const found: Task[] = []
  const page = excluded.length === 0 ? OPEN_PAGE : openPage(excluded.length)
  for (let after = 0; ; ) {
    const rows = await reader.all<TaskRow & { id: number }>(page, [agent, ...excluded, after])
    for (const row of rows) {
      const task = read(row)
      if (fits(task) && found.push(task) === most) return found
    }
    if (rows.length < PAGE) return found
    after = rows.at(-1)!.id
  }
}

/** Executing or held tasks: the end of a turn may change these. */
export async function tasksAtWork(reader: Reader, agent: string): Promise<Task[]> {
  const rows = await reader.all<TaskRow>(
    `SELECT document FROM tasks WHERE agent = ? AND state IN ('executing', 'blocked') ORDER BY id`,
    [agent],
  )
  return rows.map(read)
}

/** Tasks whose message the worker has and that it hasn't started. A turn that begins doesn't start queued ones. */
export async function tasksGiven(reader: Reader, agent: string): Promise<Task[]> {
  const rows = await reader.all<TaskRow>(
    `SELECT document FROM tasks WHERE state = 'analyzing' AND agent = ? AND id IN (
       SELECT m.task FROM deliveries AS d JOIN messages AS m ON m.seq = d.message
        WHERE d.recipient = ? AND d.state NOT IN ('read', 'failed') AND d.state <> 'queued') ORDER BY id`,
    [agent, agent],
  )
  return rows.map(read)
}

export async function hasOpenTask(
  reader: Reader,
  agent: string,
  states?: readonly TaskState[],
): Promise<boolean> {
  const among = states === undefined ? '' : `AND state IN (${states.map(() => '?').join(', ')})`
  const row = await reader.get(
    `SELECT 1 AS found FROM tasks WHERE agent = ? AND ended_at IS NULL ${among} LIMIT 1`,
    [agent, ...(states ?? [])],
  )
  return row !== undefined
}

/** The delegator's own tasks that the agent works for. */
export async function tasksServed(reader: Reader, delegator: string, agent: string): Promise<string[]> {
  const rows = await reader.all<{ parent: number }>(
    `SELECT DISTINCT parent FROM tasks
      WHERE agent = ? AND ended_at IS NULL AND delegator = ? AND parent IS NOT NULL`,
    [agent, delegator],
  )
  return rows.map(({ parent }) => formatId('task', parent))
}

/** Tasks whose claims the agent must judge, oldest first. */
export async function reviewsOf(reader: Reader, agent: string): Promise<Task[]> {
  const rows = await reader.all<TaskRow>('SELECT document FROM tasks WHERE reviewer = ? ORDER BY id', [agent])
  return rows.map(read)
}

interface TasksQuery {
  which: 'open' | 'all'
  /** Only tasks delegated by or to one of these. */
  parties: readonly string[] | 'all'
  limit: number
}

/** The newest `limit` tasks, oldest first. */
export async function readTasks(reader: Reader, { which, parties, limit }: TasksQuery): Promise<Task[]> {
  const list = parties === 'all' ? [] : [...parties]
  const marks = list.length === 0 ? 'NULL' : list.map(() => '?').join(', ')
  const conditions = [
    ...(which === 'open' ? ['ended_at IS NULL'] : []),
    ...(parties === 'all' ? [] : [`(delegator IN (${marks}) OR agent IN (${marks}))`]),
  ]
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
  // `+id` keeps the planner from scanning all tasks for the few that are open.
  const order = which === 'open' ? '+id' : 'id'
  const rows = await reader.all<TaskRow>(
    `SELECT document FROM tasks
      WHERE id IN (SELECT id FROM tasks ${where} ORDER BY ${order} DESC LIMIT ?) ORDER BY id DESC`,
    [...list, ...list, limit],
  )
  return rows.map(read).reverse()
}

function read({ document }: TaskRow): Task {
  return readTask(document)
}

function keyOf(id: string): number {
  const key = parseId('task', id)
  if (key === undefined) throw new Error(`${id} is not the id of a task`)
  return key
}

export async function openTaskIds(reader: Reader): Promise<string[]> {
  // Without ORDER BY the planner uses the index of open tasks instead of scanning all.
  const rows = await reader.all<{ id: number }>('SELECT id FROM tasks WHERE ended_at IS NULL')
  return inOrder(rows)
}

/** Tasks that may have pending outside effects: open ones, and ended ones with a pending interrupt. */
export async function unsettledTaskIds(reader: Reader): Promise<string[]> {
  return inOrder(
    await reader.all<{ id: number }>(
      `SELECT id FROM tasks WHERE ended_at IS NULL
       UNION ALL SELECT id FROM tasks WHERE interrupting = 1 AND ended_at IS NOT NULL`,
    ),
  )
}

function inOrder(rows: { id: number }[]): string[] {
  rows.sort((a, b) => a.id - b.id)
  return rows.map(({ id }) => formatId('task', id))
}

/** Fields that every document has. */
type RequiredFields = Pick<
  Task,
  | 'id'
  | 'delegator'
  | 'agent'
  | 'text'
  | 'timeoutMs'
  | 'maxAttempts'
  | 'createdAt'
  | 'state'
  | 'attempt'
  | 'version'
>
/** Other fields are omitted if they have their usual value. */
type TaskDocument = RequiredFields & Partial<Task>

const NONE = Object.freeze([])
const NO_CONTEXT = Object.freeze({})

/**
 * A task as its row stores it. Omitting empty fields halves the size, and gives fields of newer versions their empty
 * value in older documents. Every field is written out, because this runs for every event of a task and objects with
 * one fixed order of fields are several times faster.
 */
export function writeTask(task: Task): string {
  return JSON.stringify({
    id: task.id,
    parent: task.parent ?? undefined,
    root: task.root === task.id ? undefined : task.root,
    delegator: task.delegator,
    agent: task.agent,
    text: task.text,
    context: Object.keys(task.context).length === 0 ? undefined : task.context,
    requiresResponse: task.requiresResponse || undefined,
    depth: task.depth === 1 ? undefined : task.depth,
    hop: task.hop || undefined,
    checks: some(task.checks),
    judge: task.judge ?? undefined,
    resultSchema: task.resultSchema ?? undefined,
    timeoutMs: task.timeoutMs,
    maxAttempts: task.maxAttempts,
    createdAt: task.createdAt,
    state: task.state,
    attempt: task.attempt,
    failures: some(task.failures),
    version: task.version,
    acknowledgedAt: task.acknowledgedAt ?? undefined,
    endedAt: task.endedAt ?? undefined,
    result: task.result ?? undefined,
    reason: task.reason ?? undefined,
    due: task.due ?? undefined,
    remainingMs: task.remainingMs === task.timeoutMs ? undefined : task.remainingMs,
    questions: some(task.questions),
    seen: some(task.seen),
    claim: task.claim ?? undefined,
    claims: task.claims || undefined,
    evidence: some(task.evidence),
    rejections: task.rejections || undefined,
    reminders: task.reminders || undefined,
    followUps: task.followUps || undefined,
    delegations: task.delegations || undefined,
    awaiting: some(task.awaiting),
    sent: task.sent || undefined,
    unread: task.unread || undefined,
    interrupts: task.interrupts || undefined,
    interrupting: task.interrupting || undefined,
    takenOver: task.takenOver || undefined,
    held: task.held ?? undefined,
  } satisfies { [Field in keyof Task]: TaskDocument[Field] | undefined })
}

export function readTask(document: string): Task {
  const read = JSON.parse(document) as TaskDocument
  return {
    id: read.id,
    parent: read.parent ?? null,
    root: read.root ?? read.id,
    delegator: read.delegator,
    agent: read.agent,
    text: read.text,
    context: read.context ?? NO_CONTEXT,
    requiresResponse: read.requiresResponse ?? false,
    depth: read.depth ?? 1,
    hop: read.hop ?? 0,
    checks: read.checks ?? NONE,
    judge: read.judge ?? null,
    resultSchema: read.resultSchema ?? null,
    timeoutMs: read.timeoutMs,
    maxAttempts: read.maxAttempts,
    createdAt: read.createdAt,
    state: read.state,
    attempt: read.attempt,
    failures: read.failures ?? NONE,
    version: read.version,
    acknowledgedAt: read.acknowledgedAt ?? null,
    endedAt: read.endedAt ?? null,
    result: read.result ?? null,
    reason: read.reason ?? null,
    due: read.due ?? null,
    remainingMs: read.remainingMs ?? read.timeoutMs,
    questions: read.questions ?? NONE,
    seen: read.seen ?? NONE,
    claim: read.claim ?? null,
    claims: read.claims ?? 0,
    evidence: read.evidence ?? NONE,
    rejections: read.rejections ?? 0,
    reminders: read.reminders ?? 0,
    followUps: read.followUps ?? 0,
    delegations: read.delegations ?? 0,
    awaiting: read.awaiting ?? NONE,
    sent: read.sent ?? 0,
    unread: read.unread ?? false,
    interrupts: read.interrupts ?? 0,
    interrupting: read.interrupting ?? false,
    takenOver: read.takenOver ?? false,
    held: read.held ?? null,
  }
}

function some<T>(list: readonly T[]): readonly T[] | undefined {
  return list.length === 0 ? undefined : list
}
