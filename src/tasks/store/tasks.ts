import { formatId, parseId } from '../../base/ids.ts'
import type { Reader, Tx } from '../../store/store.ts'
import { nextTimerOf } from '../core/effect.ts'
import { reviewerOf, type Task, type TaskState } from '../task.ts'
import { readTask, writeTask } from './task-document.ts'

interface TaskRow {
  document: string
}

/** The columns are what tasks are looked for by; the task itself is the document. Gives its length. */
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

/** What seldom changes is written where it has: each of these columns has indexes to be looked after. */
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

/** Its timer rings at another time than the task itself says, until it changes. */
export function setTaskDue(tx: Tx, id: string, at: number): void {
  tx.run('UPDATE tasks SET due_at = ? WHERE id = ?', [at, keyOf(id)])
}

/** When that is. */
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

/** The root itself is found by its key: the index is of those below one. */
const IN_TREE = 'id = ? OR (root = ? AND parent IS NOT NULL)'

/** A whole tree, in the order in which it grew. */
export async function treeOf(reader: Reader, root: string): Promise<Task[]> {
  const key = keyOf(root)
  const rows = await reader.all<TaskRow>(`SELECT document FROM tasks WHERE ${IN_TREE} ORDER BY id`, [
    key,
    key,
  ])
  return rows.map(read)
}

/** Who has what from whom in a tree; parents come before their children. */
export async function outlineOf(
  reader: Reader,
  root: number,
): Promise<{ id: number; parent: number | null; delegator: string; agent: string }[]> {
  return await reader.all(`SELECT id, parent, delegator, agent FROM tasks WHERE ${IN_TREE} ORDER BY id`, [
    root,
    root,
  ])
}

/** What an agent works on, oldest first. */
export async function openTasksOf(reader: Reader, agent: string): Promise<Task[]> {
  const rows = await reader.all<TaskRow>(
    'SELECT document FROM tasks WHERE agent = ? AND ended_at IS NULL ORDER BY id',
    [agent],
  )
  return rows.map(read)
}

const PAGE = 50
/** Of the open tasks of an agent; one text for each number of states that are left out. */
const openPage = (left: number) => `SELECT id, document FROM tasks
  WHERE agent = ? AND ended_at IS NULL ${left === 0 ? '' : `AND state NOT IN (${Array(left).fill('?').join(', ')})`} AND id > ?
  ORDER BY id LIMIT ${PAGE}`
const OPEN_PAGE = openPage(0)

/**
 * The oldest of its open tasks for which that holds, but for those in the states that are left out. An agent may have
 * thousands: they are read a page at a time.
 */
export async function firstOpen(
  reader: Reader,
  agent: string,
  fits: (task: Task) => boolean,
  most: number,
  left: readonly TaskState[] = [],
): Promise<Task[]> {
  const found: Task[] = []
  const page = left.length === 0 ? OPEN_PAGE : openPage(left.length)
  for (let after = 0; ; ) {
    const rows = await reader.all<TaskRow & { id: number }>(page, [agent, ...left, after])
    for (const row of rows) {
      const task = read(row)
      if (fits(task) && found.push(task) === most) return found
    }
    if (rows.length < PAGE) return found
    after = rows.at(-1)!.id
  }
}

/** Those that its worker is at, or that are held: what the end of a turn may matter to. */
export async function tasksAtWork(reader: Reader, agent: string): Promise<Task[]> {
  const rows = await reader.all<TaskRow>(
    `SELECT document FROM tasks WHERE agent = ? AND state IN ('executing', 'blocked') ORDER BY id`,
    [agent],
  )
  return rows.map(read)
}

/** Those that the worker was given and has not begun. Others only wait for their turn: they are not begun with this one. */
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

/** The delegator's own tasks that this agent works for now. */
export async function tasksServed(reader: Reader, delegator: string, agent: string): Promise<string[]> {
  const rows = await reader.all<{ parent: number }>(
    `SELECT DISTINCT parent FROM tasks
      WHERE agent = ? AND ended_at IS NULL AND delegator = ? AND parent IS NOT NULL`,
    [agent, delegator],
  )
  return rows.map(({ parent }) => formatId('task', parent))
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
  return inOrder(rows)
}

/** Those that the world outside may still owe something: the open ones, and those whose worker is yet to be interrupted. */
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
