import { isQuiet, partConduct, QUIET } from '../github/core/conduct.ts'
import { parseResult, type Report, readReport } from '../github/core/report.ts'
import { isDiscreet } from '../github/core/roles.ts'
import { askedOf, type WorkContext } from '../github/team/asked.ts'
import { keepFlags } from '../github/team/flags.ts'
import type { Tx } from '../store/store.ts'
import type { Task } from './task.ts'

export interface TakenReport {
  /** What is kept of it. */
  result: string
  /** It goes back to the agent with that. */
  problem?: string
}

const NOT_KEPT = 'It does not fit the protocol, and is not kept.'
const UNFIT =
  'the result must be one JSON object with status, confidence_score, actions_taken and rationale, within the limits that the task names'

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
  if (read.ok) return { result: isDiscreet(role) ? discreet(value, read.report) : said }
  // Whose words are about people has none of them kept that do not fit, and none quoted.
  return isDiscreet(role) ? { result: NOT_KEPT, problem: UNFIT } : { result: said, problem: read.problem }
}

const NO_WORDS = 'Its words are not kept.'

/** Of whoever looks after the tone, what is proposed is kept, and no word about it; of a failure, only that it was one. */
function discreet(said: unknown, { completion }: Report): string {
  if (completion.status !== 'failure') {
    const messages = (Array.isArray(said) ? said : [said]) as Record<string, unknown>[]
    return JSON.stringify(messages.map(withoutWords))
  }
  const { errorType = '', isRecoverable = false } = completion.error ?? {}
  return JSON.stringify({
    status: 'failure',
    rationale: NO_WORDS,
    error: {
      error_type: KNOWN_ERRORS.has(errorType) ? errorType : 'agent_error',
      error_message: NO_WORDS,
      is_recoverable: isRecoverable,
    },
  })
}

const KEPT: ReadonlySet<string> = new Set([
  ...['message_type', 'status', 'confidence_score', 'actions_taken'],
  ...['approval_needed_for', 'timeout_hours', 'proposed_action', 'confidence'],
])

function withoutWords(message: Record<string, unknown>): Record<string, unknown> {
  const kept = Object.entries(message).filter(([field]) => KEPT.has(field))
  return { ...Object.fromEntries(kept), rationale: NO_WORDS }
}

const KNOWN_ERRORS: ReadonlySet<string> = new Set([
  'ci_trigger_failed',
  'insufficient_context',
  'api_error',
  'timeout',
])
