import { formatId, parseId } from '../model/identifier.ts'
import type { Task } from '../model/task.ts'
import type { Reader, Tx } from './store.ts'

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
      JSON.stringify(task),
      task.createdAt,
      task.endedAt,
      tx.now,
    ],
  )
}

export async function updateTask(tx: Tx, task: Task): Promise<void> {
  await tx.run('UPDATE tasks SET state = ?, document = ?, ended_at = ?, updated_at = ? WHERE id = ?', [
    task.state,
    JSON.stringify(task),
    task.endedAt,
    tx.now,
    keyOf(task.id),
  ])
}

export async function findTask(reader: Reader, id: string): Promise<Task | undefined> {
  const key = parseId('task', id)
  if (key === undefined) return undefined
  const row = await reader.get<TaskRow>('SELECT document FROM tasks WHERE id = ?', [key])
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

/** What an agent works on, oldest first. */
export async function openTasksOf(reader: Reader, agent: string): Promise<Task[]> {
  const rows = await reader.all<TaskRow>(
    'SELECT document FROM tasks WHERE agent = ? AND ended_at IS NULL ORDER BY id',
    [agent],
  )
  return rows.map(read)
}

/** The newest trees, or only those with something still going on. */
export async function readTasks(reader: Reader, which: 'open' | 'all', limit: number): Promise<Task[]> {
  const where = which === 'open' ? 'WHERE ended_at IS NULL' : ''
  const rows = await reader.all<TaskRow>(`SELECT document FROM tasks ${where} ORDER BY id DESC LIMIT ?`, [
    limit,
  ])
  return rows.map(read).reverse()
}

function read({ document }: TaskRow): Task {
  return JSON.parse(document) as Task
}

function keyOf(id: string): number {
  const key = parseId('task', id)
  if (key === undefined) throw new Error(`${id} is not the id of a task`)
  return key
}

export async function openTaskIds(reader: Reader): Promise<string[]> {
  const rows = await reader.all<{ id: number }>('SELECT id FROM tasks WHERE ended_at IS NULL ORDER BY id')
  return rows.map(({ id }) => formatId('task', id))
}
