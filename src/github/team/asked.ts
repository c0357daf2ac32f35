import type { Task } from '../../tasks/task.ts'
import type { Asked } from '../core/report.ts'
import type { GithubWork } from '../store/work.ts'

/** What a task of the GitHub team says of itself; agents see it with the task. */
export interface WorkContext {
  github_work: string
  role: string
  repository: string
  number?: number
}

/** What the report of such a task is compared with. */
export function askedOf(
  { id, agent, role, number }: Pick<GithubWork, 'id' | 'agent' | 'role' | 'number'>,
  task: Pick<Task, 'id' | 'createdAt'>,
): Asked {
  return {
    delegation: id,
    task: task.id,
    agent,
    role,
    at: new Date(task.createdAt).toISOString(),
    ...(number === null ? {} : { number }),
  }
}
