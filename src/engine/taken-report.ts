import { isQuiet, partConduct, QUIET } from '../github/conduct.ts'
import { parseResult, readReport } from '../github/report.ts'
import type { Task } from '../model/task.ts'
import type { Tx } from '../store/store.ts'
import { askedOf, type WorkContext } from './github/asked.ts'
import { keepFlags } from './github/flags.ts'
import { isDiscreet } from './github/settings.ts'

export interface TakenReport {
  /** What is kept of it. */
  result: string
  /** It goes back to the agent with that. */
  problem?: string
}

/**
 * The report of a task of the GitHub team, as far as it is kept with the task. Flags about people go to moderators only:
 * they are in no task, no message and no audit entry, and no report comes back to an agent because of one (S3.15).
 */
export async function takeReport(
  tx: Tx,
  redact: (text: string) => string,
  task: Task,
  said: string,
): Promise<TakenReport> {
  const { github_work: id, role, repository = '', number } = task.context as Partial<WorkContext>
  if (typeof id !== 'string' || typeof role !== 'string') return { result: said }
  const asked = askedOf({ id, agent: task.agent, role, number: number ?? null }, task)
  const value = parseResult(said)
  const parted = partConduct(value, isDiscreet(role))
  if (parted !== undefined) {
    await keepFlags(tx, redact, { asked, repository, flags: parted.flags })
    return { result: QUIET }
  }
  if (isQuiet(value) && readReport(said, asked).ok) return { result: QUIET }
  const read = readReport(said, asked)
  // Whose words are about people has none of them kept that cannot be read.
  const result = value === undefined && isDiscreet(role) ? 'It cannot be read, and is not kept.' : said
  return read.ok ? { result } : { result, problem: read.problem }
}
