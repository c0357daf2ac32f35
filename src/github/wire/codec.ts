import type { z } from 'zod'
import type { Result } from '../../base/result.ts'
import { MAX_COMMAND_BYTES } from '../../protocol/codec.ts'
import { FREE_FIELDS, MESSAGES, type MessageType } from './schema.ts'

/** Encodes and decodes the JSON protocol v1.0 of the GitHub supervisor team (S3), with our own field names (C10). */

type WireFields<Type extends MessageType> = z.output<(typeof MESSAGES)[Type]>

type TeamMessageOf<Type extends MessageType> = Renamed<WireFields<Type>>
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

type DecodedTeamMessage = Result<TeamMessage, string>

const MISSING = /^Invalid input: expected .+, received undefined$/

/** Refuses a message over the size limit instead of cutting it (C20). */
export function decodeTeamMessage(text: string): DecodedTeamMessage {
  const bytes = Buffer.byteLength(text)
  if (bytes > MAX_COMMAND_BYTES)
    return refused(`The message is ${bytes} bytes; the limit is ${MAX_COMMAND_BYTES}`)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return refused('The message is not JSON')
  }
  return readTeamMessage(value)
}

/** The same for a parsed value within the size limit. */
export function readTeamMessage(value: unknown): DecodedTeamMessage {
  const type = isRecord(value) ? value.message_type : undefined
  if (typeof type !== 'string' || !Object.hasOwn(MESSAGES, type)) {
    const known = Object.keys(MESSAGES).join(', ')
    return refused(
      `message_type is ${typeof type === 'string' ? `"${type.slice(0, 60)}"` : 'missing'}; it must be one of ${known}`,
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
  // Without a task_id, the id of the delegation identifies the task (C10).
  if (message.type === 'task_completion')
    return { ok: true, value: { ...message, taskId: message.taskId ?? message.inReplyTo } }
  return { ok: true, value: message }
}

/** Throws if the message is invalid or too large, which callers rule out. */
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

function refused(error: string): DecodedTeamMessage {
  return { ok: false, error }
}

/** Fields with another name inside the service (C10). All others only change their case: `issue_number`, `issueNumber`. */
const OURS = {
  message_type: 'type',
  message_id: 'id',
  timestamp: 'at',
  from_agent: 'from',
  to_agent: 'to',
} as const
type Ours = typeof OURS

const THEIRS: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(OURS).map(([theirs, ours]) => [ours, theirs]),
)

type Camel<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : Name

type OurName<Name extends string> = Name extends keyof Ours ? Ours[Name] : Camel<Name>

type FreeField = 'details' | 'flags' | 'metrics'

/** A message of the protocol with our field names. */
type Renamed<Value> = Value extends readonly (infer Item)[]
  ? Renamed<Item>[]
  : Value extends object
    ? {
        [Key in keyof Value as Key extends string ? OurName<Key> : Key]: Key extends FreeField
          ? Value[Key]
          : Renamed<Value[Key]>
      }
    : Value

function toOurs(value: unknown): unknown {
  return renamed(value, oursOf)
}

function toTheirs(value: unknown): unknown {
  return renamed(value, theirsOf)
}

function oursOf(theirs: string): string {
  if (Object.hasOwn(OURS, theirs)) return OURS[theirs as keyof Ours]
  return theirs.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
}

function theirsOf(ours: string): string {
  if (Object.hasOwn(THEIRS, ours)) return THEIRS[ours]!
  return ours.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

function renamed(value: unknown, rename: (key: string) => string): unknown {
  if (Array.isArray(value)) return value.map((item) => renamed(item, rename))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value)
    .filter(([, inner]) => inner !== undefined)
    .map(([key, inner]) => [rename(key), FREE_FIELDS.has(key) ? inner : renamed(inner, rename)])
  return Object.fromEntries(entries)
}
