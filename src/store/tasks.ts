import { formatId, parseId } from '../model/identifier.ts'
import { reviewerOf, type Task } from '../model/task.ts'
import type { Reader, Tx } from './store.ts'
import { readTask, writeTask } from './task-document.ts'

interface TaskRow {
  document: string
}

/** The columns are what tasks are looked for by; the task itself is the document. */
export async function insertTask(tx: Tx, task: Task): Promise<void> {
  await tx.run(
    `INSERT INTO tasks (id, parent, root, delegator, agent, state, document, created_at, ended_at, updated_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
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
      tx.now,
    ],
  )
}

export async function updateTask(tx: Tx, task: Task): Promise<void> {
  await tx.run(
    'UPDATE tasks SET state = ?, reviewer = ?, document = ?, ended_at = ?, updated_at = ? WHERE id = ?',
    [task.state, reviewerOf(task), writeTask(task), task.endedAt, tx.now, keyOf(task.id)],
  )
}

export async function findTask(reader: Reader, id: string): Promise<Task | undefined> {
  const key = parseId('task', id)
  if (key === undefined) return undefined
  const row = await reader.get<TaskRow>('SELECT document FROM tasks WHERE id = ?', [key])
  return row === undefined ? undefined : read(row)
}

/** The same for one that is going to change: no other daemon changes it meanwhile. */
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

/** A whole tree, in the order in which it grew. */
export async function treeOf(reader: Reader, root: string): Promise<Task[]> {
  const rows = await reader.all<TaskRow>('SELECT document FROM tasks WHERE root = ? ORDER BY id', [
    keyOf(root),
  ])
  return rows.map(read)
}

/** Who has what from whom in a tree; parents come before their children. */
export async function outlineOf(
  reader: Reader,
  root: number,
): Promise<{ id: number; parent: number | null; delegator: string; agent: string }[]> {
  return await reader.all('SELECT id, parent, delegator, agent FROM tasks WHERE root = ? ORDER BY id', [root])
}

/** What an agent works on, oldest first. */
export async function openTasksOf(reader: Reader, agent: string): Promise<Task[]> {
  const rows = await reader.all<TaskRow>(
    'SELECT document FROM tasks WHERE agent = ? AND ended_at IS NULL ORDER BY id',
    [agent],
  )
  return rows.map(read)
}

/** Claims that an agent is to judge, oldest first. */
export async function reviewsOf(reader: Reader, agent: string): Promise<Task[]> {
  const rows = await reader.all<TaskRow>('SELECT document FROM tasks WHERE reviewer = ? ORDER BY id', [agent])
  return rows.map(read)
}

export interface TasksQuery {
  which: 'open' | 'all'
  /** Only those that one of these gave or got: what someone who is not the operator may see. */
  parties: readonly string[] | 'all'
  limit: number
}

/** The newest, oldest first. */
export async function readTasks(reader: Reader, { which, parties, limit }: TasksQuery): Promise<Task[]> {
  const list = parties === 'all' ? [] : [...parties]
  const marks = list.length === 0 ? 'NULL' : list.map(() => '?').join(', ')
  const conditions = [
    ...(which === 'open' ? ['ended_at IS NULL'] : []),
    ...(parties === 'all' ? [] : [`(delegator IN (${marks}) OR agent IN (${marks}))`]),
  ]
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
  // `+id` keeps the planner from walking over all tasks that ever were to find the few that are open.
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
  // In no order: else the planner walks over all tasks that ever were, rather than the index of the open ones.
  const rows = await reader.all<{ id: number }>('SELECT id FROM tasks WHERE ended_at IS NULL')
  rows.sort((a, b) => a.id - b.id)
  return rows.map(({ id }) => formatId('task', id))
}
