import { foldName, ORCHESTRATOR } from '../../base/agent.ts'
import { type HitlApprovalRequest, readTeamMessage, type TaskCompletion } from '../wire/codec.ts'
import { type Proposal, readAction } from './action.ts'
import { isNeverDone } from './policy.ts'

/** What an agent was asked, for what it left out of its answer and to compare with what it did not (C3, C10). */
export interface Asked {
  /** The delegation's message_id. */
  readonly delegation: string
  readonly task: string
  readonly agent: string
  readonly role: string
  readonly at: string
  /** The thread it is about. */
  readonly number?: number
}

export interface Refused {
  readonly type: string
  readonly why: string
}

export interface Report {
  readonly completion: TaskCompletion
  readonly proposals: readonly Proposal[]
  /** Proposals that people must decide on, because the agent says so. */
  readonly byApproval: readonly Proposal[]
  /** What it proposed and nobody can or may do. */
  readonly refused: readonly Refused[]
}

export type ReadReport = { ok: true; report: Report } | { ok: false; problem: string }

const MOST_BYTES = 102_400
const MOST_MESSAGES = 20
const CODE_BLOCK = /^\s*```[a-z]*\s*\n([\s\S]*?)\n\s*```\s*$/

/** What a report holds, in a code block or not; undefined for what is no JSON. */
export function parseResult(result: string): unknown {
  try {
    return JSON.parse(CODE_BLOCK.exec(result)?.[1] ?? result)
  } catch {
    return undefined
  }
}

/** One message of the protocol, or several; a model may put them into a code block and leave the envelope out. */
export function readReport(result: string, asked: Asked): ReadReport {
  const bytes = Buffer.byteLength(result)
  if (bytes > MOST_BYTES) return no(`the result is ${bytes} bytes; at most ${MOST_BYTES} are taken`)
  const value = parseResult(result)
  if (value === undefined) return no('the result must be one JSON object, and nothing else')
  const said = Array.isArray(value) ? value : [value]
  if (said.length === 0 || said.length > MOST_MESSAGES)
    return no(`the result must hold 1 to ${MOST_MESSAGES} messages`)

  const requests: HitlApprovalRequest[] = []
  const completions: TaskCompletion[] = []
  for (const [index, one] of said.entries()) {
    if (typeof one !== 'object' || one === null)
      return no('the result must be one JSON object, and nothing else')
    const decoded = readTeamMessage(enveloped(one, asked, index))
    if (!decoded.ok) return no(decoded.problem)
    const { message } = decoded
    const foreign = mismatch(message, asked)
    if (foreign !== undefined) return no(foreign)
    if (message.type === 'task_completion') completions.push(message)
    else if (message.type === 'hitl_approval_request') requests.push(message)
    else return no(`a ${message.type} is no answer to a task`)
  }
  const [completion] = completions
  if (completion === undefined || completions.length > 1)
    return no('the result must hold one task_completion')
  return { ok: true, report: { completion, ...sorted(completion, requests, asked) } }
}

function sorted(
  completion: TaskCompletion,
  requests: readonly HitlApprovalRequest[],
  { number }: Asked,
): Pick<Report, 'proposals' | 'byApproval' | 'refused'> {
  const proposals: Proposal[] = []
  const byApproval: Proposal[] = []
  const refused: Refused[] = []
  const sort = (
    into: Proposal[],
    type: string,
    details: Readonly<Record<string, unknown>>,
    rest: Omit<Proposal, 'action'>,
  ) => {
    if (isNeverDone(type)) {
      refused.push({ type, why: 'no agent gets that done' })
      return
    }
    const read = readAction(type, details, number)
    if (read.ok) into.push({ action: read.action, ...rest })
    else refused.push({ type, why: read.problem })
  }
  // What a failed task proposed is not done.
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

/** Models leave out what the transport knows; what they do say is not overwritten, and compared below. */
export function enveloped(
  said: object,
  { delegation, role, at, task }: Asked,
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

type Answering = { from: string; inReplyTo?: string | undefined; taskId?: string | undefined }

function mismatch(message: Answering, { agent, role, delegation, task }: Asked): string | undefined {
  if (![agent, role].some((name) => foldName(name) === foldName(message.from))) {
    return `from_agent: you are ${agent}, not ${message.from.slice(0, 60)}`
  }
  if (message.inReplyTo !== undefined && message.inReplyTo !== delegation) {
    return `in_reply_to: you were asked with ${delegation}`
  }
  if (message.taskId !== undefined && message.taskId !== delegation && message.taskId !== task) {
    return `task_id: your task is ${task}`
  }
  return undefined
}

function no(problem: string): ReadReport {
  return { ok: false, problem }
}
