/** Finds the task that a command is about. */
import { OPERATOR } from '../base/agent.ts'
import { AppError } from '../base/errors.ts'
import { formatId, parseId } from '../base/ids.ts'
import { failure, type Result } from '../base/result.ts'
import type { HandlerContext } from '../commands/commands.ts'
import { tasksOfMessages } from '../messages/messages.ts'
import { findHumanRequest } from '../people/people.ts'
import type { Reader } from '../store/store.ts'
import { findTask, firstOpen } from './store.ts'
import { isEnd, type Task, type TaskState } from './task.ts'
import type { AgentTurn } from './watch-agents.ts'

/** A task, and the id of the message or request by which it was named. */
export interface Reference {
  task: Task
  about: string
}

/**
 * Finds a task by its own id, by the id of a message or request about it, or by an id that a sender chose for its
 * message. Several senders may have chosen the same id: `isMeant` selects one; if it selects none, the first is returned
 * for the error message.
 */
export async function findReference(
  reader: Reader,
  id: string,
  isMeant: (found: Reference) => boolean = () => true,
): Promise<Reference | undefined> {
  const direct = await findDirect(reader, id)
  if (direct !== undefined && isMeant(direct)) return direct
  let first = direct
  for (const remembered of await rememberedIds(reader, id)) {
    const found = await findDirect(reader, remembered)
    if (found !== undefined && isMeant(found)) return found
    first ??= found
  }
  return first
}

async function findDirect(reader: Reader, id: string): Promise<Reference | undefined> {
  const task = await findTask(reader, id)
  if (task !== undefined) return { task, about: id }
  const message = parseId('msg', id)
  if (message !== undefined) {
    const [found] = await tasksOfMessages(reader, [message])
    return found === undefined ? undefined : await referenceTo(reader, formatId('task', found.task), id)
  }
  const request = parseId('req', id)
  const row = request === undefined ? undefined : await findHumanRequest(reader, request)
  if (row?.purpose !== 'task') return undefined
  return await referenceTo(reader, (JSON.parse(row.context) as { task: string }).task, id)
}

async function referenceTo(reader: Reader, task: string, about: string): Promise<Reference | undefined> {
  const found = await findTask(reader, task)
  return found === undefined ? undefined : { task: found, about }
}

/**
 * The speaker's own task that a command is about: the named one, else the task of its turn, else its only one.
 * Undefined if it has none. A held command stays with the task that it was sent in, or with none.
 */
export async function ownTask(
  turns: { turnOf(agent: string): AgentTurn },
  { tx, speaker, saidIn }: HandlerContext,
  id: string | undefined,
  fits?: (task: Task) => boolean,
): Promise<Result<Task | undefined>> {
  if (id !== undefined) {
    const isOwn = ({ agent, state }: Task) => agent === speaker.name && !isEnd(state)
    const named = await findReference(tx, id, ({ task }) => isOwn(task))
    return named === undefined ? failure(unknownReference(id)) : { ok: true, value: named.task }
  }
  if (saidIn !== undefined) {
    const task = saidIn === null ? undefined : await findTask(tx, saidIn)
    return { ok: true, value: task === undefined || isEnd(task.state) ? undefined : task }
  }
  const agent = speaker.name
  if (agent === OPERATOR) return { ok: true, value: undefined }
  const found = await currentTask(tx, agent, turns.turnOf(agent), fits)
  return isAmbiguous(found) ? failure(severalTasks(found)) : { ok: true, value: found }
}

function isAmbiguous(found: Task | readonly Task[] | undefined): found is readonly Task[] {
  return Array.isArray(found)
}

/** An error message lists at most this many tasks. */
const MAX_LISTED = 10
const NOT_STARTED: readonly TaskState[] = ['pending', 'analyzing']

/**
 * The task of the agent's turn, else its only open one, else the candidates. A command in a turn on one task is never
 * about a queued one, so a single queued task is returned as a candidate too. Reads no more tasks than it needs, because
 * an agent may have thousands.
 */
async function currentTask(
  reader: Reader,
  agent: string,
  turn: AgentTurn,
  fits: (task: Task) => boolean = () => true,
): Promise<Task | readonly Task[] | undefined> {
  const current: Task[] = []
  let hasOwn = false
  for (const id of [...turn.tasks].reverse()) {
    const task = await findTask(reader, id)
    if (task?.agent !== agent) continue
    hasOwn = true
    if (!isEnd(task.state) && fits(task)) current.push(task)
    if (current.length > 1) break
  }
  if (current.length === 1 && !turn.isOver) return current[0]
  const open = await firstOpen(reader, agent, fits, MAX_LISTED)
  if (open.length === 0) return undefined
  if (turn.tasks.size === 0) return open.length === 1 ? open[0] : open
  const started = await firstOpen(
    reader,
    agent,
    (task) => isStarted(task) && fits(task),
    MAX_LISTED,
    NOT_STARTED,
  )
  if (started.length > 0) return started.length === 1 ? started[0] : started
  return hasOwn ? open : undefined
}

/** A held task counts by the state that it returns to. */
function isStarted({ state, held }: Task): boolean {
  return !NOT_STARTED.includes(held?.state ?? state)
}

/** Open questions that the asker's tasks put to `addressee`, of two tasks at most: two already need a choice. */
export async function questionsPut(reader: Reader, asker: string, addressee: string): Promise<Reference[]> {
  const asks = ({ questions }: Task) => questions.some(({ to }) => to === addressee)
  const tasks = await firstOpen(reader, asker, asks, 2)
  return tasks.flatMap((task) =>
    task.questions.filter(({ to }) => to === addressee).map(({ id }) => ({ task, about: id })),
  )
}

export function unknownReference(id: string): AppError {
  return new AppError('NOT_FOUND', `There is no task, message or request ${id.slice(0, 100)}`, {
    hint: 'in_response_to is the id in the message that you reply to, such as task_7 or msg_12.',
  })
}

function severalTasks(tasks: readonly Task[]): AppError {
  const listed = tasks.map(({ id, text }) => `${id} (${text.split('\n', 1)[0]!.slice(0, 60)})`).join(', ')
  const problem =
    tasks.length === 1 ? 'Your turn is about another task than the one you have' : 'You have several tasks'
  return new AppError('CONFLICT', `${problem}: ${listed}`, {
    hint: 'Name the task with in_response_to.',
  })
}

export function noTask(name: string): AppError {
  return new AppError('NOT_FOUND', `${name} has no open task`, {
    hint: 'Name the task with in_response_to. To write to somebody without a task, use send_message.',
  })
}

/** Stores the id that the sender chose for its message, so a reply may name it. */
export function remember({ tx, speaker }: HandlerContext, messageId: string | undefined, ref: string): void {
  if (messageId === undefined) return
  // Models invent ids and repeat them, so the newest wins.
  tx.run(
    `INSERT INTO said_ids (name, speaker, ref, at) VALUES (?, ?, ?, ?)
     ON CONFLICT (name, speaker) DO UPDATE SET ref = excluded.ref, at = excluded.at`,
    [messageId, speaker.name, ref, tx.now],
  )
}

/** The last message or task that the speaker gave this id. */
export async function saidBefore(
  { tx, speaker }: HandlerContext,
  messageId: string | undefined,
): Promise<string | undefined> {
  if (messageId === undefined) return undefined
  const row = await tx.get<{ ref: string }>('SELECT ref FROM said_ids WHERE name = ? AND speaker = ?', [
    messageId,
    speaker.name,
  ])
  return row?.ref
}

/** The messages and tasks that senders gave this id, newest first. */
export async function rememberedIds(reader: Reader, name: string): Promise<string[]> {
  const rows = await reader.all<{ ref: string }>(
    'SELECT ref FROM said_ids WHERE name = ? ORDER BY at DESC LIMIT 20',
    [name],
  )
  return rows.map(({ ref }) => ref)
}

/** Part of an audit entry's data, by which the entry is found with its tree. */
interface AboutTask {
  task_id?: string
  root?: string
}

export function aboutTask(task: Task | undefined): AboutTask {
  return task === undefined ? {} : { task_id: task.id, root: task.root }
}

/** The task that a request to people belongs to: the one that it names, the one that waits for it, or the asker's only one. */
export async function taskOfRequest(
  reader: Reader,
  request: { id: string; asker: string; context: string },
): Promise<AboutTask> {
  const { task: named, saidIn } = tasksIn(request.context)
  if (named !== undefined) return aboutTask(await findTask(reader, named))
  const asking = await taskAsking(reader, request)
  if (asking !== undefined) return aboutTask(asking)
  if (saidIn !== undefined) return saidIn === null ? {} : aboutTask(await findTask(reader, saidIn))
  const [first, ...others] = await firstOpen(reader, request.asker, () => true, 2)
  return aboutTask(others.length === 0 ? first : undefined)
}

/** The open task that waits for a verdict on the request. */
export async function taskAsking(
  reader: Reader,
  { id: request, asker, context }: { id: string; asker: string; context: string },
): Promise<Task | undefined> {
  const asks = ({ questions }: Task) => questions.some(({ id }) => id === request)
  const { saidIn } = tasksIn(context)
  // No task waits for a command that was sent outside of tasks. This avoids a search through thousands.
  if (saidIn === null) return undefined
  if (saidIn === undefined) return (await firstOpen(reader, asker, asks, 1))[0]
  const task = await findTask(reader, saidIn)
  return task !== undefined && asks(task) ? task : undefined
}

/** `task`: of a question. `saidIn`: of a held command; null if it was sent outside of tasks. */
function tasksIn(context: string): { task?: string; saidIn?: string | null } {
  return JSON.parse(context) as { task?: string; saidIn?: string | null }
}
