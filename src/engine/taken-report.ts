import { randomUUID } from 'node:crypto'
import { partConduct } from '../github/conduct.ts'
import { enveloped, parseResult, readReport } from '../github/report.ts'
import type { Task } from '../model/task.ts'
import { insertConduct } from '../store/github.ts'
import type { Tx } from '../store/store.ts'
import { encodeTeamMessage, readTeamMessage } from '../wire/github-team.ts'
import { askedOf, type WorkContext } from './github/asked.ts'
import { isDiscreet } from './github/settings.ts'

export interface TakenReport {
  /** What is kept of it. */
  result: string
  /** It goes back to the agent with that. */
  problem?: string
}

const DISCREET =
  'the result does not fit the protocol; a coc_violation_flag is a message of its own with all its fields'

/**
 * The report of a task of the GitHub team, as far as it is kept with the task. Flags about people go to moderators only:
 * they are in no task, no message and no audit entry, and what is wrong with one is told in words that name none (S3.15).
 */
export async function takeReport(
  tx: Tx,
  redact: (text: string) => string,
  task: Task,
  said: string,
): Promise<TakenReport> {
  const { github_work: id, role, repository, number } = task.context as Partial<WorkContext>
  if (typeof id !== 'string' || typeof role !== 'string') return { result: said }
  const asked = askedOf({ id, agent: task.agent, role, number: number ?? null }, task)
  const value = parseResult(said)
  const parted = partConduct(value)
  // Whose words are about people has none of them kept that cannot be read.
  const result =
    parted?.rest ?? (value === undefined && isDiscreet(role) ? 'It cannot be read, and is not kept.' : said)
  const flags = (parted?.flags ?? []).map((flag, index) =>
    readTeamMessage({
      privacy_level: 'PRIVATE_TO_MODERATORS',
      ...enveloped(flag, asked, index),
      message_type: 'coc_violation_flag',
      from_agent: role,
    }),
  )
  if (flags.some(({ ok }) => !ok)) return { result, problem: DISCREET }
  const read = readReport(result, asked)
  if (!read.ok) return { result, problem: parted === undefined ? read.problem : DISCREET }
  for (const flag of flags) {
    if (!flag.ok) continue
    const text = redact(encodeTeamMessage(flag.message))
    await insertConduct(tx, {
      id: randomUUID(),
      repository: repository ?? '',
      number: number ?? null,
      flag: text,
    })
  }
  return { result }
}
