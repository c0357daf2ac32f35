/** Conduct flags: separated from reports, stored for moderators only, and announced to them without their content (S3.14, S3.15). */
import { hash } from 'node:crypto'
import type { WorkQueue } from '../base/queue-loop.ts'
import type { Tx } from '../store/store.ts'
import type { Task } from '../tasks/task.ts'
import type { FilteredReport } from '../tasks/tasks.ts'
import { encodeTeamMessage, readTeamMessage } from './core/protocol.ts'
import {
  EMPTY_REPORT,
  enveloped,
  isEmptyReport,
  parseResult,
  publicErrorType,
  type ReportContext,
  readReport,
  replacementFlag,
  separateConduct,
  type TeamReport,
} from './core/report.ts'
import { reportContextOf, type WorkContext } from './delegate-work.ts'
import type { GithubDependencies } from './dependencies.ts'
import { isConfidentialRole } from './roles.ts'
import { hasNewConduct, insertConduct, markConductNotified } from './store.ts'

const NOT_STORED = 'The report does not follow the protocol and was not stored.'
const UNFIT =
  'the result must be one JSON object with status, confidence_score, actions_taken and rationale, within the limits that the task names'

/**
 * Decides what is stored of a report from the GitHub team. Conduct flags go to moderators only: no task, message or
 * audit entry contains them, and a report is never sent back because of one (S3.15).
 */
export function filterReport(
  tx: Tx,
  redact: (text: string) => string,
  task: Task,
  report: string,
): (FilteredReport & { isFlagged?: boolean }) | undefined {
  const { github_work: id, role, repository = '', number } = task.context as Partial<WorkContext>
  if (typeof id !== 'string' || typeof role !== 'string') return undefined
  const context = reportContextOf({ id, agent: task.agent, role, number: number ?? null }, task)
  const value = parseResult(report)
  const conduct = separateConduct(value, isConfidentialRole(role))
  if (conduct !== undefined) {
    storeFlags(tx, redact, { context, repository, flags: conduct.flags })
    return { result: EMPTY_REPORT, isFlagged: true }
  }
  const read = readReport(report, context)
  if (read.ok && isEmptyReport(value)) return { result: EMPTY_REPORT }
  if (read.ok) return { result: isConfidentialRole(role) ? withoutText(value, read.value) : report }
  // An invalid report of a confidential role is neither stored nor quoted.
  return isConfidentialRole(role)
    ? { result: NOT_STORED, problem: UNFIT }
    : { result: report, problem: read.error }
}

const REMOVED = 'The text of the agent is not stored.'

/** Keeps the proposals of a confidential role without their explanations, and of a failure only its type. */
function withoutText(value: unknown, { completion }: TeamReport): string {
  if (completion.status !== 'failure') {
    const messages = (Array.isArray(value) ? value : [value]) as Record<string, unknown>[]
    return JSON.stringify(messages.map(storedFields))
  }
  const { errorType = '', isRecoverable = false } = completion.error ?? {}
  return JSON.stringify({
    status: 'failure',
    rationale: REMOVED,
    error: {
      error_type: publicErrorType(errorType),
      error_message: REMOVED,
      is_recoverable: isRecoverable,
    },
  })
}

const STORED_FIELDS: ReadonlySet<string> = new Set([
  ...['message_type', 'status', 'confidence_score', 'actions_taken'],
  ...['approval_needed_for', 'timeout_hours', 'proposed_action', 'confidence'],
])

function storedFields(message: Record<string, unknown>): Record<string, unknown> {
  const stored = Object.entries(message).filter(([field]) => STORED_FIELDS.has(field))
  return { ...Object.fromEntries(stored), rationale: REMOVED }
}

interface FlaggedConduct {
  readonly context: ReportContext
  readonly repository: string
  readonly flags: readonly Record<string, unknown>[]
}

/** Stores each flag of a piece of work once, however often the agent repeats it. Writes no audit entry (C12). */
export function storeFlags(
  tx: Tx,
  redact: (text: string) => string,
  { context, repository, flags }: FlaggedConduct,
): void {
  for (const [index, flag] of flags.entries()) {
    insertConduct(tx, {
      id: hash('sha256', `conduct/${context.delegation}/${index}`).slice(0, 32),
      repository,
      number: context.number ?? null,
      flag: redact(encodeFlag(flag, context, index)),
    })
  }
}

function encodeFlag(flag: Record<string, unknown>, context: ReportContext, index: number): string {
  const read = readTeamMessage(completeFlag(flag, context, index))
  if (read.ok) return encodeTeamMessage(read.value)
  const replacement = readTeamMessage(completeFlag(replacementFlag(flag), context, index))
  if (!replacement.ok)
    throw new Error(`the replacement flag does not follow the protocol: ${replacement.error}`)
  return encodeTeamMessage(replacement.value)
}

function completeFlag(
  flag: Record<string, unknown>,
  context: ReportContext,
  index: number,
): Record<string, unknown> {
  return {
    privacy_level: 'PRIVATE_TO_MODERATORS',
    ...enveloped(flag, context, index),
    message_type: 'coc_violation_flag',
    from_agent: context.role,
  }
}

const TIMEOUT_MS = 10_000
const FIRST_BACKOFF_MS = 1000
const MAX_BACKOFF_MS = 3600_000

/** The content of a flag never leaves the service. */
const NOTICE = { text: 'A flag needs a moderator: orc github moderation' }

/** Notifies moderators at their own URL. Logs nothing, because a log line would reveal that a flag exists (S3.15). */
export function createModeratorCalls({ store, clock, settings, env }: GithubDependencies): WorkQueue {
  let backoff = FIRST_BACKOFF_MS
  let notBefore = 0

  const address = () => env[settings().moderatorsUrlEnv ?? ''] || undefined

  return {
    async next() {
      const url = address()
      if (url === undefined || clock.now() < notBefore || !(await hasNewConduct(store))) return false
      const until = clock.now()
      if (await callModerators(url)) {
        backoff = FIRST_BACKOFF_MS
        await store.write((tx) => markConductNotified(tx, until))
        return true
      }
      notBefore = clock.now() + backoff
      backoff = Math.min(backoff * 2, MAX_BACKOFF_MS)
      return false
    },
    async due() {
      return address() !== undefined && (await hasNewConduct(store)) ? notBefore : undefined
    },
  }
}

async function callModerators(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      redirect: 'manual',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(NOTICE),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    response.body?.cancel().catch(() => {})
    return response.ok
  } catch {
    return false
  }
}
