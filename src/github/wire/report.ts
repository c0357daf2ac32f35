import { foldName, ORCHESTRATOR } from '../../base/agent.ts'
import type { Result } from '../../base/result.ts'
import { type ActionProposal, readAction } from '../core/action.ts'
import { isNeverDone } from '../core/policy.ts'
import { type HitlApprovalRequest, readTeamMessage, type TaskCompletion } from './codec.ts'

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
  /** Proposals for which the agent requests approval. */
  readonly byApproval: readonly ActionProposal[]
  /** Invalid or forbidden proposals. */
  readonly refused: readonly RefusedProposal[]
}

const MAX_BYTES = 102_400
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
  if (bytes > MAX_BYTES) return refuse(`the result is ${bytes} bytes; the limit is ${MAX_BYTES}`)
  const value = parseResult(result)
  if (value === undefined) return refuse('the result must be one JSON object, and nothing else')
  const said = Array.isArray(value) ? value : [value]
  if (said.length === 0 || said.length > MAX_MESSAGES)
    return refuse(`the result must contain 1 to ${MAX_MESSAGES} messages`)

  const requests: HitlApprovalRequest[] = []
  const completions: TaskCompletion[] = []
  for (const [index, one] of said.entries()) {
    if (typeof one !== 'object' || one === null)
      return refuse('the result must be one JSON object, and nothing else')
    const decoded = readTeamMessage(enveloped(one, context, index))
    if (!decoded.ok) return refuse(decoded.error)
    const message = decoded.value
    const foreign = mismatch(message, context)
    if (foreign !== undefined) return refuse(foreign)
    if (message.type === 'task_completion') completions.push(message)
    else if (message.type === 'hitl_approval_request') requests.push(message)
    else return refuse(`a ${message.type} cannot answer a task`)
  }
  const [completion] = completions
  if (completion === undefined || completions.length > 1)
    return refuse('the result must contain one task_completion')
  return { ok: true, value: { completion, ...sortProposals(completion, requests, context) } }
}

function sortProposals(
  completion: TaskCompletion,
  requests: readonly HitlApprovalRequest[],
  { number }: ReportContext,
): Pick<TeamReport, 'proposals' | 'byApproval' | 'refused'> {
  const proposals: ActionProposal[] = []
  const byApproval: ActionProposal[] = []
  const refused: RefusedProposal[] = []
  const sort = (
    into: ActionProposal[],
    type: string,
    details: Readonly<Record<string, unknown>>,
    rest: Omit<ActionProposal, 'action'>,
  ) => {
    if (isNeverDone(type)) {
      refused.push({ type, why: 'agents must not do this' })
      return
    }
    const read = readAction(type, details, number)
    if (read.ok) into.push({ action: read.value, ...rest })
    else refused.push({ type, why: read.error })
  }
  // Proposals of a failed task are dropped.
  if (completion.status !== 'failure') {
    const into = completion.status === 'requires_approval' ? byApproval : proposals
    for (const { actionType, details, confidence } of completion.actionsTaken) {
      sort(into, actionType, details, { confidence: confidence ?? completion.confidenceScore })
    }
  }
  for (const { proposedAction, confidence, rationale, timeoutHours } of requests) {
    const { actionType, issueNumber, prNumber, reason, details } = proposedAction
    const about = issueNumber ?? prNumber
    const said = {
      ...details,
      ...(about === undefined ? {} : { number: about }),
      ...(reason === undefined ? {} : { reason }),
    }
    sort(byApproval, actionType, said, { confidence, rationale, timeoutHours })
  }
  return { proposals, byApproval, refused }
}

/** Adds the envelope fields that models leave out. Fields that they do send are kept, and checked by `mismatch`. */
export function enveloped(
  said: object,
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
    ...said,
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

function refuse(error: string): Result<TeamReport, string> {
  return { ok: false, error }
}
