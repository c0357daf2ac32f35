import { formatId } from '../base/ids.ts'
import { addToNotice, type HumanRequestRow, lockTopic } from '../people/store/human-requests.ts'
import type { Tx } from '../store/store.ts'
import { aboutTask } from './audit-data.ts'
import type { Task } from './task.ts'

/** As the column `context` of the notice keeps it. */
interface Told {
  task: string
  question: string
  /** The first of those that it tells of. */
  tasks?: readonly string[]
}

/** Enough to begin with; `orc tasks --all` has the others. */
const NAMED = 20

/**
 * What people are told of together: that tasks of one agent, from one delegator, failed for one cause. Numbers and ids in
 * the reason do not make it another cause.
 */
export function topicOf({ delegator, agent }: Task, reason: string): string {
  const cause = reason.replace(/\d+/g, '#').slice(0, 500)
  return JSON.stringify([delegator, agent, cause])
}

/** Adds a task to the open notice on the topic: two thousand that fail at once are one thing to look at. False: there is none. */
export async function addToTopic(
  tx: Tx,
  task: Task,
  { topic, reason }: { topic: string; reason: string },
): Promise<boolean> {
  const notice = await lockTopic(tx, topic)
  if (notice === undefined) return false
  const told = JSON.parse(notice.context) as Told
  const { tasks = [told.task] } = told
  const count = notice.count + 1
  const named = tasks.length < NAMED ? [...tasks, task.id] : tasks
  await addToNotice(tx, notice.id, {
    question: questionOf(task, reason, count, named),
    context: JSON.stringify({ ...told, tasks: named } satisfies Told),
  })
  note(tx, notice, task, count)
  return true
}

function questionOf({ agent, state }: Task, reason: string, count: number, named: readonly string[]): string {
  const more = count > named.length ? ` and ${count - named.length} more` : ''
  return `${count} tasks of ${agent} ${state}: ${reason} (${named.join(', ')}${more})`
}

/** In the record of each tree that it is about; nobody is called for it once more. */
function note(tx: Tx, notice: HumanRequestRow, task: Task, count: number) {
  const id = formatId('req', notice.id)
  tx.audit({
    type: 'human.gathered',
    class: 'internal',
    actor: task.agent,
    text: `${id} tells of ${task.id} as well: ${count} by now`,
    data: { request_id: id, kind: notice.kind, count, ...aboutTask(task) },
  })
}
