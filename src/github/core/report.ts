/** Reports of agents: reading them, separating conduct flags, and the error object of a failure. */
import { foldName, ORCHESTRATOR } from '../../base/agent.ts'
import { failure, type Result } from '../../base/result.ts'
import type { Task } from '../../tasks/task.ts'
import { type ActionProposal, readAction } from './action.ts'
import { isNeverDone } from './policy.ts'
import {
  type HitlApprovalRequest,
  isRecord,
  MAX_MESSAGE_BYTES,
  readTeamMessage,
  type TaskCompletion,
} from './protocol.ts'

/** The task that a report answers: fills in missing fields and checks the others (C3, C10). */
export interface ReportContext {
  /** The delegation's message_id. */
  readonly delegation: string
  readonly task: string
  readonly agent: string
  readonly role: string
  readonly at: string
  /** The thread of the task. */
  readonly number?: number
}

interface RefusedProposal {
  readonly type: string
  readonly why: string
}

export interface TeamReport {
  readonly completion: TaskCompletion
  readonly proposals: readonly ActionProposal[]
  /** Invalid or forbidden proposals. */
  readonly refused: readonly RefusedProposal[]
}

const MAX_MESSAGES = 20
const CODE_BLOCK = /^\s*```[a-z]*\s*\n([\s\S]*?)\n\s*```\s*$/

/** Parses a report, with or without a code block around it; undefined if it is not JSON. */
export function parseResult(result: string): unknown {
  try {
    return JSON.parse(CODE_BLOCK.exec(result)?.[1] ?? result)
  } catch {
    return undefined
  }
}

/** Reads one or several messages of the protocol. Models may use a code block and leave the envelope out. */
export function readReport(result: string, context: ReportContext): Result<TeamReport, string> {
  const bytes = Buffer.byteLength(result)
  if (bytes > MAX_MESSAGE_BYTES)
    return failure(`the result is ${bytes} bytes; the limit is ${MAX_MESSAGE_BYTES}`)
  const value = parseResult(result)
  if (value === undefined) return failure('the result must be one JSON object, and nothing else')
  const messages = Array.isArray(value) ? value : [value]
  if (messages.length === 0 || messages.length > MAX_MESSAGES)
    return failure(`the result must contain 1 to ${MAX_MESSAGES} messages`)

  const requests: HitlApprovalRequest[] = []
  const completions: TaskCompletion[] = []
  for (const [index, one] of messages.entries()) {
    if (typeof one !== 'object' || one === null)
      return failure('the result must be one JSON object, and nothing else')
    const decoded = readTeamMessage(enveloped(one, context, index))
    if (!decoded.ok) return failure(decoded.error)
    const message = decoded.value
    const foreign = mismatch(message, context)
    if (foreign !== undefined) return failure(foreign)
    if (message.type === 'task_completion') completions.push(message)
    else if (message.type === 'hitl_approval_request') requests.push(message)
    else return failure(`a ${message.type} cannot answer a task`)
  }
  const [completion] = completions
  if (completion === undefined || completions.length > 1)
    return failure('the result must contain one task_completion')
  return { ok: true, value: { completion, ...sortProposals(completion, requests, context.number) } }
}

/** Proposals of a report and of approval requests. `number`: the thread of the task. */
export function sortProposals(
  completion: TaskCompletion | undefined,
  requests: readonly HitlApprovalRequest[],
  number: number | undefined,
): Pick<TeamReport, 'proposals' | 'refused'> {
  const proposals: ActionProposal[] = []
  const refused: RefusedProposal[] = []
  const sort = (
    type: string,
    details: Readonly<Record<string, unknown>>,
    rest: Omit<ActionProposal, 'action'>,
  ) => {
    if (isNeverDone(type)) {
      refused.push({ type, why: 'agents must not do this' })
      return
    }
    const read = readAction(type, details, number)
    if (read.ok) proposals.push({ action: read.value, ...rest })
    else refused.push({ type, why: read.error })
  }
  // Proposals of a failed task are dropped.
  if (completion !== undefined && completion.status !== 'failure') {
    const needsApproval = completion.status === 'requires_approval'
    for (const { actionType, details, confidence = completion.confidenceScore } of completion.actionsTaken)
      sort(actionType, details, { confidence, needsApproval })
  }
  for (const { proposedAction, confidence, rationale, timeoutHours } of requests) {
    const { actionType, issueNumber, prNumber, reason, details } = proposedAction
    const about = issueNumber ?? prNumber
    const fields = {
      ...details,
      ...(about === undefined ? {} : { number: about }),
      ...(reason === undefined ? {} : { reason }),
    }
    sort(actionType, fields, { confidence, rationale, timeoutHours, needsApproval: true })
  }
  return { proposals, refused }
}

/** Adds the envelope fields that models leave out. Fields that they do send are kept, and checked by `mismatch`. */
export function enveloped(
  message: object,
  { delegation, role, at, task }: ReportContext,
  index: number,
): Record<string, unknown> {
  return {
    message_type: 'task_completion',
    message_id: `${task}-answer-${index + 1}`,
    timestamp: at,
    from_agent: role,
    to_agent: ORCHESTRATOR,
    in_reply_to: delegation,
    ...message,
  }
}

type AnsweringMessage = { from: string; inReplyTo?: string | undefined; taskId?: string | undefined }

function mismatch(
  message: AnsweringMessage,
  { agent, role, delegation, task }: ReportContext,
): string | undefined {
  if (![agent, role].some((name) => foldName(name) === foldName(message.from))) {
    return `from_agent: you are ${agent}, not ${message.from.slice(0, 60)}`
  }
  if (message.inReplyTo !== undefined && message.inReplyTo !== delegation) {
    return `in_reply_to: your delegation is ${delegation}`
  }
  if (message.taskId !== undefined && message.taskId !== delegation && message.taskId !== task) {
    return `task_id: your task is ${task}`
  }
  return undefined
}

/** Conduct flags are removed from a report before any of it is stored (S3.14, S3.15). */
interface SeparatedConduct {
  /** The report without the flags. */
  readonly rest: string
  readonly flags: readonly Record<string, unknown>[]
}

const TYPE = 'coc_violation_flag'

/** Stored for every report without proposals, flagged or not: a difference would reveal the flagged ones. */
export const EMPTY_REPORT = JSON.stringify({
  status: 'success',
  confidence_score: 1,
  actions_taken: [],
  rationale: 'No action is proposed.',
})

/** Undefined without a flag. In a confidential role, a request for human review counts as a flag too. */
export function separateConduct(value: unknown, isConfidential = false): SeparatedConduct | undefined {
  const messages = (Array.isArray(value) ? value : [value]).filter(isRecord)
  const flags = messages.filter(({ message_type }) => message_type === TYPE)
  const others = messages.filter(({ message_type }) => message_type !== TYPE)
  const hints = others.filter(
    (one) => hasConcern(one) || (isConfidential && one.requires_human_review === true),
  )
  if (flags.length === 0 && hints.length === 0) return undefined
  // The rest of a flagged report could still hint at the flag, so its proposals are dropped.
  return { rest: EMPTY_REPORT, flags: flags.length > 0 ? flags : hints.map(hintOf) }
}

/** A report without proposals, requests and findings. */
export function isEmptyReport(value: unknown): boolean {
  if (!isRecord(value) || value.status === 'failure' || value.requires_human_review === true) return false
  const { actions_taken: actions, flags } = value
  if (Array.isArray(actions) && actions.length > 0) return false
  return !isRecord(flags) || Object.values(flags).every((one) => !one)
}

/** Replaces an invalid flag, so that it reaches moderators too. */
export function replacementFlag(flag: Record<string, unknown>): Record<string, unknown> {
  const advice = 'Look at the thread: the flag is invalid and quoted as the agent sent it.'
  return vagueFlag(JSON.stringify(flag).slice(0, 4000), advice)
}

/** For an agent that reports a concern without details. */
function hintOf({ rationale, human_review_reason }: Record<string, unknown>): Record<string, unknown> {
  const text = [rationale, human_review_reason].filter((one) => typeof one === 'string').join('\n')
  return vagueFlag(text.slice(0, 2000), 'Look at the thread: the agent reports a concern without details.')
}

function vagueFlag(excerpt: string, advice: string): Record<string, unknown> {
  return {
    violation: {
      severity: 'low',
      confidence: 0,
      violation_type: 'other',
      location: 'the thread of the task',
    },
    ...(excerpt === '' ? {} : { context: { excerpt } }),
    recommended_action: advice,
  }
}

function hasConcern({ flags }: Record<string, unknown>): boolean {
  const concern = isRecord(flags) ? flags.coc_concern : undefined
  return concern !== undefined && concern !== false && concern !== null && concern !== ''
}

/**
 * The error object of the protocol (S3.12, S3.21). Everything but the message is public, so only the message may
 * contain the agent's own words.
 */
export interface TaskError {
  readonly error_type: string
  readonly error_message: string
  readonly error_code: string
  readonly timestamp: string
  readonly retry_count: number
  readonly is_recoverable: boolean
  readonly suggested_action: string
}

const AGENT_ERROR = 'agent_error'

/** The type is public, so an unknown one, which could be a sentence, is replaced. */
export function publicErrorType(type: string): string {
  return Object.hasOwn(SUGGESTED, type) ? type : AGENT_ERROR
}

/** An identifier, so that no sentence gets published as a code. */
const CODE = /^[A-Z][A-Z0-9_]{0,23}$/

interface FailedTask {
  readonly task: Pick<Task, 'state' | 'reason' | 'attempt'>
  /** The agent's report, if it is valid. */
  readonly completion: TaskCompletion | undefined
  /** Why the report is invalid. */
  readonly problem: string | undefined
  readonly retries: number
  readonly at: string
}

const SUGGESTED: Readonly<Record<string, string>> = {
  timeout: 'The agent took too long; ask again with a comment.',
  api_error: 'Try again later.',
  insufficient_context: 'The thread needs more information from a person.',
  ci_trigger_failed: 'Check the workflow.',
  protocol_violation: "Check the agent's last output: orc logs.",
}

export function taskError({ task, completion, problem, retries, at }: FailedTask): TaskError {
  const reported = completion?.error
  if (reported !== undefined && reported !== null) {
    const type = publicErrorType(reported.errorType)
    const words = [
      type === reported.errorType ? '' : `${reported.errorType}:`,
      reported.errorMessage,
      reported.suggestedAction,
    ]
    return {
      error_type: type,
      error_message: words.filter((part) => part !== undefined && part !== '').join(' '),
      error_code:
        reported.errorCode !== undefined && CODE.test(reported.errorCode) ? reported.errorCode : codeOf(type),
      timestamp: reported.at ?? at,
      retry_count: Math.max(reported.retryCount, retries),
      is_recoverable: reported.isRecoverable,
      suggested_action: suggestion(type),
    }
  }
  const reason = problem ?? task.reason ?? task.state
  const type =
    problem !== undefined
      ? 'protocol_violation'
      : /time|no (?:answer|word|sign)|late\b/i.test(reason)
        ? 'timeout'
        : AGENT_ERROR
  return {
    error_type: type,
    error_message: reason,
    error_code: codeOf(type),
    timestamp: at,
    // The task counts the attempts of the service.
    retry_count: Math.max(retries, task.attempt - 1),
    is_recoverable: false,
    suggested_action: suggestion(type),
  }
}

function codeOf(type: string): string {
  return `ERR_${type.toUpperCase().replace(/[^A-Z0-9]+/g, '_')}`.slice(0, 60)
}

function suggestion(type: string): string {
  return SUGGESTED[type] ?? 'A maintainer should check it.'
}
