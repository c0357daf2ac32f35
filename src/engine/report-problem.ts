import { readReport } from '../github/report.ts'
import type { Task } from '../model/task.ts'
import { askedOf, type WorkContext } from './github/asked.ts'

/** What is wrong with the report of a task of the GitHub team; it goes back to the agent with that. */
export function reportProblem(task: Task, result: string): string | undefined {
  const { github_work: id, role, number } = task.context as Partial<WorkContext>
  if (typeof id !== 'string' || typeof role !== 'string') return undefined
  const read = readReport(result, askedOf({ id, agent: task.agent, role, number: number ?? null }, task))
  return read.ok ? undefined : read.problem
}
