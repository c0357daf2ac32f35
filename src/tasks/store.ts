import { formatId, parseId } from '../base/ids.ts'
import type { Reader, Tx } from '../store/store.ts'
import { nextTimerOf } from './core/events-and-effects.ts'
import { INITIAL_FIELDS, reviewerOf, type Task, type TaskState } from './task.ts'

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

export async function findTask(reader: Reader, id: string, lock = ''): Promise<Task | undefined> {
  const key = parseId('task', id)
  if (key === undefined) return undefined
  const row = await reader.get<TaskRow>(`SELECT document FROM tasks WHERE id = ? ${lock}`, [key])
  return row === undefined ? undefined : readTask(row)
}

/** Locks the row, so no other daemon changes the task until the transaction ends. */
export function lockTask(tx: Tx, id: string): Promise<Task | undefined> {
  return findTask(tx, id, tx.lockRow)
}

export async function childrenOf(reader: Reader, id: string): Promise<Task[]> {
  const rows = await reader.all<TaskRow>('SELECT document FROM tasks WHERE parent = ? ORDER BY id', [
    keyOf(id),
  ])
  return rows.map(readTask)
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
  return rows.map(readTask)
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
  return rows.map(readTask)
}

const PAGE = 50

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
  const among = excluded.length === 0 ? '' : `AND state NOT IN (${excluded.map(() => '?').join(', ')})`
  const page = `SELECT id, document FROM tasks WHERE agent = ? AND ended_at IS NULL ${among} AND id > ?
    ORDER BY id LIMIT ${PAGE}`
  for (let after = 0; ; ) {
    const rows = await reader.all<TaskRow & { id: number }>(page, [agent, ...excluded, after])
    for (const row of rows) {
      const task = readTask(row)
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
  return rows.map(readTask)
}

/** Tasks whose message the worker has and that it hasn't started. A turn that begins doesn't start queued ones. */
export async function tasksGiven(reader: Reader, agent: string): Promise<Task[]> {
  const rows = await reader.all<TaskRow>(
    `SELECT document FROM tasks WHERE state = 'analyzing' AND agent = ? AND id IN (
       SELECT m.task FROM deliveries AS d JOIN messages AS m ON m.seq = d.message
        WHERE d.recipient = ? AND d.state NOT IN ('read', 'failed') AND d.state <> 'queued') ORDER BY id`,
    [agent, agent],
  )
  return rows.map(readTask)
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
  return rows.map(readTask)
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
  return rows.map(readTask).reverse()
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

/** Omits fields with their usual value, which halves the size. */
export function writeTask(task: Task): string {
  const document: Partial<Record<keyof Task, unknown>> = {}
  // Twice as fast as Object.entries, and on the path of every change.
  let name: keyof Task
  for (name in task) if (!isUsual(name, task[name], task)) document[name] = task[name]
  return JSON.stringify(document)
}

const USUAL: Readonly<Record<string, unknown>> = INITIAL_FIELDS

function isUsual(name: string, value: unknown, { id, timeoutMs }: Task): boolean {
  if (name === 'root') return value === id
  if (name === 'remainingMs') return value === timeoutMs
  const usual = USUAL[name]
  if (typeof usual !== 'object' || usual === null) return value === usual
  return Object.keys(value as object).length === 0
}

export function readTask({ document }: TaskRow): Task {
  const stored = JSON.parse(document) as Omit<Task, 'root' | 'remainingMs'>
  return { ...INITIAL_FIELDS, root: stored.id, remainingMs: stored.timeoutMs, ...stored }
}
