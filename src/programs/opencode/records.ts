/** The parts of opencode's responses that we use; the rest is dropped. */
import { z } from 'zod'

const Tokens = z.object({
  input: z.number(),
  output: z.number(),
  reasoning: z.number().default(0),
  cache: z.object({ read: z.number(), write: z.number() }),
})

const OpenCodeFailure = z.object({
  name: z.string(),
  data: z.object({ message: z.string().optional() }).optional(),
})
export type OpenCodeFailure = z.output<typeof OpenCodeFailure>

export const MessageInfo = z.object({
  id: z.string(),
  sessionID: z.string(),
  role: z.enum(['user', 'assistant']),
  time: z.object({ created: z.number(), completed: z.number().optional() }),
  /** For an answer: the user message it answers. */
  parentID: z.string().optional(),
  /** `true` for the summary that replaces a compacted context; an object for a user message. */
  summary: z.unknown().optional(),
  error: OpenCodeFailure.optional(),
  providerID: z.string().optional(),
  modelID: z.string().optional(),
  tokens: Tokens.optional(),
})
export type MessageInfo = z.output<typeof MessageInfo>

export const OpenCodePart = z.object({
  id: z.string(),
  sessionID: z.string(),
  messageID: z.string(),
  /** text, reasoning, tool, step-start, step-finish, file, compaction … */
  type: z.string(),
  text: z.string().optional(),
  /** Added by the program, not by the model or the user. */
  synthetic: z.boolean().optional(),
  ignored: z.boolean().optional(),
  /** `end` is set once the model has finished it, and also when an interruption cut it. */
  time: z.object({ start: z.number().optional(), end: z.number().optional() }).optional(),
})
export type OpenCodePart = z.output<typeof OpenCodePart>

export const OpenCodeMessage = z.object({ info: MessageInfo, parts: z.array(OpenCodePart) })
export type OpenCodeMessage = z.output<typeof OpenCodeMessage>

export const ConversationInfo = z.object({
  id: z.string(),
  /** Set for a subagent's conversation. */
  parentID: z.string().optional(),
  time: z.object({ created: z.number() }),
})
export type ConversationInfo = z.output<typeof ConversationInfo>

export const Status = z.object({ type: z.string(), message: z.string().optional() })

export const PermissionRequest = z.object({
  id: z.string(),
  sessionID: z.string(),
  permission: z.string(),
  patterns: z.array(z.string()).default([]),
  metadata: z.record(z.string(), z.unknown()).default({}),
})
export type PermissionRequest = z.output<typeof PermissionRequest>

export const QuestionRequest = z.object({
  id: z.string(),
  sessionID: z.string(),
  questions: z.array(z.looseObject({ question: z.string() })),
})
export type QuestionRequest = z.output<typeof QuestionRequest>

export const Providers = z.object({
  providers: z.array(
    z.object({
      id: z.string(),
      models: z.record(z.string(), z.object({ limit: z.object({ context: z.number() }).optional() })),
    }),
  ),
})

const event = <Type extends string, Properties extends z.ZodType>(type: Type, properties: Properties) =>
  z.object({ type: z.literal(type), properties })

const answered = z.object({ requestID: z.string() })

const KnownEvent = z.discriminatedUnion('type', [
  event('server.connected', z.unknown().optional()),
  event('session.created', z.object({ info: ConversationInfo })),
  event('session.status', z.object({ sessionID: z.string(), status: Status })),
  event('session.error', z.object({ sessionID: z.string().optional(), error: OpenCodeFailure.optional() })),
  event('message.updated', z.object({ info: MessageInfo })),
  event('message.part.updated', z.object({ part: OpenCodePart })),
  event('permission.asked', PermissionRequest),
  event('permission.replied', answered),
  event('question.asked', QuestionRequest),
  event('question.replied', answered),
  event('question.rejected', answered),
])
export type OpenCodeEvent = z.output<typeof KnownEvent>

const KNOWN: ReadonlySet<string> = new Set(KnownEvent.options.map((option) => option.shape.type.value))

/** Undefined for irrelevant events; throws for a relevant one with an unexpected shape. */
export function readEvent(json: string): OpenCodeEvent | undefined {
  const raw: unknown = JSON.parse(json)
  const type = z.object({ type: z.string() }).safeParse(raw).data?.type
  return type !== undefined && KNOWN.has(type) ? KnownEvent.parse(raw) : undefined
}

/**
 * The complete texts of a message that are the agent's own (C4): no thinking, tool input or output, nothing
 * added by the program, no summary of a compacted context.
 */
export function ownTexts({ info, parts }: OpenCodeMessage): OpenCodePart[] {
  if (info.role !== 'assistant' || info.summary === true) return []
  const last = parts.at(-1)
  return parts.filter(
    (part) =>
      part.type === 'text' &&
      part.synthetic !== true &&
      part.ignored !== true &&
      (part.text ?? '').trim() !== '' &&
      // A text cut off by a broken connection has no end.
      part.time?.end !== undefined &&
      // An interruption cuts the text but sets its end; half a command must not be executed (C5).
      !(info.error !== undefined && part === last),
  )
}

/** Text of a user message, without the program's additions. */
export function userText({ parts }: OpenCodeMessage): string {
  return parts
    .filter((part) => part.type === 'text' && part.synthetic !== true)
    .map((part) => part.text ?? '')
    .join('\n')
}
