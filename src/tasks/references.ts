import { OPERATOR } from '../base/agent.ts'
import { AppError } from '../base/errors.ts'
import { formatId, parseId } from '../base/ids.ts'
import type { HandlerContext } from '../commands/commands.ts'
import { tasksOfMessages } from '../messages/store/messages.ts'
import { findHumanRequest } from '../people/store/human-requests.ts'
import type { Reader } from '../store/store.ts'
import { currentTask } from './current-task.ts'
import { rememberedBy, rememberedIds, rememberId } from './store/said-ids.ts'
import { findTask, firstOpen } from './store/tasks.ts'
import { isEnd, type Task } from './task.ts'
import type { Tasks } from './tasks.ts'

/** What `in_response_to` names: a task, and the message or request about it if it was named by that. */
export interface Reference {
  task: Task
  about: string
}

/**
 * By the task's id, by a message's or request's, or by the id that a sender gave its own message. Several senders may
 * have given the same one: `isMeant` says which the speaker can mean; where it can mean none, it is told of the first.
 */
export async function findReference(
  reader: Reader,
  said: string,
  isMeant: (found: Reference) => boolean = () => true,
): Promise<Reference | undefined> {
  const direct = await findDirect(reader, said)
  if (direct !== undefined && isMeant(direct)) return direct
  let first = direct
  for (const ref of await rememberedIds(reader, said)) {
    const found = await findDirect(reader, ref)
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
    return found === undefined ? undefined : await about(reader, formatId('task', found.task), id)
  }
  const request = parseId('req', id)
  const row = request === undefined ? undefined : await findHumanRequest(reader, request)
  if (row?.purpose !== 'task') return undefined
  return await about(reader, (JSON.parse(row.context) as { task: string }).task, id)
}

async function about(reader: Reader, task: string, id: string): Promise<Reference | undefined> {
  const found = await findTask(reader, task)
  return found === undefined ? undefined : { task: found, about: id }
}

/**
 * The speaker's own task that a command is about: the one it names, else the one that its turn is about, else its
 * only one. Undefined when it has none. What was held stays with the task that it was said in, or with none.
 */
export async function ownTask(
  tasks: Pick<Tasks, 'turnOf'>,
  { tx, speaker, saidIn }: HandlerContext,
  said: string | undefined,
  fits?: (task: Task) => boolean,
): Promise<Task | AppError | undefined> {
  if (said !== undefined) {
    const isOwn = ({ agent, state }: Task) => agent === speaker.name && !isEnd(state)
    return (await findReference(tx, said, ({ task }) => isOwn(task)))?.task ?? unknownReference(said)
  }
  if (saidIn !== undefined) {
    const task = saidIn === null ? undefined : await findTask(tx, saidIn)
    return task === undefined || isEnd(task.state) ? undefined : task
  }
  const agent = speaker.name
  if (agent === OPERATOR) return undefined
  const found = await currentTask(tx, { agent, turn: tasks.turnOf(agent), fits })
  return isSeveral(found) ? severalTasks(found) : found
}

/** What an agent's tasks have asked somebody; of more than one task, no more than shows that it is not clear which. */
export async function questionsPut(reader: Reader, asker: string, whom: string): Promise<Reference[]> {
  const asks = ({ questions }: Task) => questions.some(({ to }) => to === whom)
  const tasks = await firstOpen(reader, asker, asks, 2)
  return tasks.flatMap((task) =>
    task.questions.filter(({ to }) => to === whom).map(({ id }) => ({ task, about: id })),
  )
}

function isSeveral(found: Task | readonly Task[] | undefined): found is readonly Task[] {
  return Array.isArray(found)
}

export function unknownReference(said: string): AppError {
  return new AppError('NOT_FOUND', `There is no task, message or request ${said.slice(0, 100)}`, {
    hint: 'in_response_to is the id in the message that you reply to, such as task_7 or msg_12.',
  })
}

function severalTasks(tasks: readonly Task[]): AppError {
  const listed = tasks.map(({ id, text }) => `${id} (${text.split('\n', 1)[0]!.slice(0, 60)})`).join(', ')
  const said = tasks.length === 1 ? 'Your turn is not on the task that you have' : 'You have several tasks'
  return new AppError('CONFLICT', `${said}: ${listed}`, {
    hint: 'Say which one is meant with in_response_to.',
  })
}

export function noTask(name: string): AppError {
  return new AppError('NOT_FOUND', `${name} has no open task`, {
    hint: 'Name the task with in_response_to. To write to somebody without one, use send_message.',
  })
}

/** The sender's own id for what it said, so that a reply may name it. */
export function remember({ tx, speaker }: HandlerContext, messageId: string | undefined, ref: string): void {
  if (messageId !== undefined) rememberId(tx, speaker.name, messageId, ref)
}

/** What the speaker last called so. */
export async function saidBefore(
  { tx, speaker }: HandlerContext,
  messageId: string | undefined,
): Promise<string | undefined> {
  return messageId === undefined ? undefined : await rememberedBy(tx, speaker.name, messageId)
}
