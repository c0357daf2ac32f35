import type { ReadEntry } from '../../audit/store.ts'
import { formatId, parseId } from '../../base/ids.ts'
import type { Store } from '../../store/store.ts'
import { outlineOf } from '../store/tasks.ts'
import type { Judge, Task } from '../task.ts'

/** A task and all below it, including tasks that are delegated later. */
interface Branch {
  /** Whether an entry belongs to a task of the branch that these parties may see, or to a halt during it. */
  includes(entry: ReadEntry, parties: readonly string[] | 'all'): boolean
  has(task: string, parties: readonly string[] | 'all'): boolean
}

interface TaskParties {
  delegator: string
  agent: string
  judge?: Judge | null
}

/** Visible to delegator, worker and the agent that judges. */
export function isVisible(
  { delegator, agent, judge }: TaskParties,
  parties: readonly string[] | 'all',
): boolean {
  if (parties === 'all' || parties.includes(delegator) || parties.includes(agent)) return true
  return judge?.kind === 'agent' && parties.includes(judge.name)
}

export async function openBranch(store: Store, top: Task): Promise<Branch> {
  const members = new Map<string, TaskParties>([[top.id, top]])
  // Parents come before their children.
  for (const { id, parent, delegator, agent } of await outlineOf(store, parseId('task', top.root)!)) {
    if (parent !== null) add(formatId('task', id), formatId('task', parent), { delegator, agent })
  }

  function add(id: string, parent: unknown, parties: TaskParties) {
    if (typeof parent === 'string' && members.has(parent)) members.set(id, parties)
  }

  function has(task: string, parties: readonly string[] | 'all'): boolean {
    const member = members.get(task)
    return member !== undefined && isVisible(member, parties)
  }

  return {
    has,
    includes({ type, data, at, class: privacy }, parties) {
      if (type === 'team.halted' || type === 'team.resumed') return isBefore(top.endedAt, at)
      if (privacy === 'private' && parties !== 'all') return false
      if (data?.root !== top.root || typeof data.task_id !== 'string') return false
      const { task_id, parent, delegator, agent } = data
      if (type === 'task.delegated')
        add(task_id, parent, { delegator: String(delegator), agent: String(agent) })
      return has(task_id, parties)
    },
  }
}

function isBefore(endedAt: number | null, at: string): boolean {
  return endedAt === null || Date.parse(at) <= endedAt
}
