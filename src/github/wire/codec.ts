/** The JSON of the GitHub supervisor team, protocol v1.0 (S3), and our own names for what it says (C10). */
import type { z } from 'zod'
import { MAX_COMMAND_BYTES } from '../../protocol/codec.ts'
import { type Renamed, toOurs, toTheirs } from './names.ts'
import { MESSAGES, type MessageType } from './schema.ts'

type Written<Type extends MessageType> = z.output<(typeof MESSAGES)[Type]>

export type TeamMessageOf<Type extends MessageType> = Renamed<Written<Type>>
export type TaskDelegation = TeamMessageOf<'task_delegation'>
export type TaskCompletion = TeamMessageOf<'task_completion'>
export type HitlApprovalRequest = TeamMessageOf<'hitl_approval_request'>
export type CocViolationFlag = TeamMessageOf<'coc_violation_flag'>
export type AgentHealthCheck = TeamMessageOf<'agent_health_check'>
export type TeamMessage =
  | TaskDelegation
  | TaskCompletion
  | HitlApprovalRequest
  | CocViolationFlag
  | AgentHealthCheck

export type DecodedTeamMessage = { ok: true; message: TeamMessage } | { ok: false; problem: string }

export const TEAM_PROTOCOL = '1.0'

const MISSING = /^Invalid input: expected .+, received undefined$/

/** Over the limit it is refused as a whole, never cut (C20). */
export function decodeTeamMessage(text: string): DecodedTeamMessage {
  const bytes = Buffer.byteLength(text)
  if (bytes > MAX_COMMAND_BYTES)
    return refused(`The message is ${bytes} bytes; at most ${MAX_COMMAND_BYTES} are taken`)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return refused('The message is not JSON')
  }
  return readTeamMessage(value)
}

/** The same for what was parsed, and measured, before. */
export function readTeamMessage(value: unknown): DecodedTeamMessage {
  const type = isRecord(value) ? value.message_type : undefined
  if (typeof type !== 'string' || !Object.hasOwn(MESSAGES, type)) {
    const known = Object.keys(MESSAGES).join(', ')
    return refused(
      `message_type is ${typeof type === 'string' ? `"${type.slice(0, 60)}"` : 'missing'}; it is one of ${known}`,
    )
  }
  const parsed = MESSAGES[type as MessageType].safeParse(value)
  if (!parsed.success) {
    const problems = parsed.error.issues
      .slice(0, 5)
      .map(({ path, message }) => `${path.join('.')}: ${message.replace(MISSING, 'is missing')}`)
    return refused(`${type}: ${problems.join('; ')}`)
  }
  const message = toOurs(parsed.data) as TeamMessage
  // A missing task_id is the delegation's id (C10).
  if (message.type === 'task_completion')
    return { ok: true, message: { ...message, taskId: message.taskId ?? message.inReplyTo } }
  return { ok: true, message }
}

/** Throws for what is no such message, or too large for one: whoever makes one sees to that. */
export function encodeTeamMessage(message: TeamMessage): string {
  const written = MESSAGES[message.type].parse(toTheirs(message))
  const text = JSON.stringify(written)
  const bytes = Buffer.byteLength(text)
  if (bytes > MAX_COMMAND_BYTES) throw new RangeError(`a ${message.type} of ${bytes} bytes is too large`)
  return text
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function refused(problem: string): DecodedTeamMessage {
  return { ok: false, problem }
}
