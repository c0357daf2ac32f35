import { z } from 'zod'
import { parseJsonLine } from '../line-splitter.ts'

/** The parts of a transcript line that we use. */
export type ClaudeRecord =
  | {
      readonly kind: 'answer'
      readonly uuid: string
      readonly at: number
      readonly texts: readonly string[]
      readonly toolUses: readonly ClaudeToolUse[]
      readonly model: string
      readonly messageId: string
      readonly tokens: ClaudeTokens | undefined
    }
  /** User text shown to the model: typed, pasted, queued, or a hook's feedback. */
  | {
      readonly kind: 'prompt'
      readonly uuid: string
      /** The preceding record of the conversation. */
      readonly parent: string | undefined
      readonly text: string
      readonly canBeWithdrawn: boolean
    }
  | { readonly kind: 'results'; readonly toolUseIds: readonly string[] }
  | { readonly kind: 'interrupted'; readonly uuid: string }
  /** The program's own text in the model's place, such as an API error. */
  | { readonly kind: 'failure'; readonly uuid: string; readonly text: string }

export interface ClaudeToolUse {
  readonly id: string
  readonly name: string
  readonly input: Readonly<Record<string, unknown>>
}

interface ClaudeTokens {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
}

const Block = z.looseObject({ type: z.string() })
const Text = z.looseObject({ type: z.literal('text'), text: z.string() })
const Use = z.looseObject({
  type: z.literal('tool_use'),
  id: z.string(),
  name: z.string(),
  input: z.record(z.string(), z.unknown()).catch({}),
})
const Result = z.looseObject({ type: z.literal('tool_result'), tool_use_id: z.string() })
const Content = z.union([z.string().transform((text) => [{ type: 'text', text }]), z.array(Block)])

const count = z.number().catch(0)
const Usage = z.looseObject({
  input_tokens: count,
  output_tokens: count,
  cache_read_input_tokens: count,
  cache_creation_input_tokens: count,
})

const AnswerRecord = z.looseObject({
  uuid: z.string(),
  timestamp: z.string().optional(),
  isApiErrorMessage: z.boolean().optional(),
  message: z.looseObject({
    id: z.string().catch(''),
    model: z.string().catch(''),
    content: Content,
    usage: Usage.optional().catch(undefined),
  }),
})
const UserRecord = z.looseObject({
  uuid: z.string(),
  parentUuid: z.string().optional().catch(undefined),
  isMeta: z.boolean().optional(),
  isCompactSummary: z.boolean().optional(),
  message: z.looseObject({ content: Content }),
})
const Queued = z.looseObject({
  uuid: z.string(),
  attachment: z.looseObject({ type: z.literal('queued_command'), prompt: Content }),
})

const Feedback = z.looseObject({
  uuid: z.string(),
  attachment: z.looseObject({
    type: z.literal('hook_additional_context'),
    hookEvent: z.literal('Stop'),
    content: z.union([z.string().transform((text) => [text]), z.array(z.string())]),
  }),
})

/** Lines of other types are by far the longest, and irrelevant. */
const OF_INTEREST = /"type":"(?:user|assistant|attachment)"/
/** Written by the program when a conversation is resumed, or in place of a failed answer. */
const SYNTHETIC = '<synthetic>'
/** The program's own text in the user's place: output of local commands and of `!` commands. */
const NOT_A_PROMPT = /^\s*<(?:local-command-|command-name>|command-message>|bash-(?:input|stdout|stderr)>)/
const INTERRUPTED = /^\[Request interrupted by user/

/** Undefined for lines outside the main conversation, or unreadable ones. */
export function readRecord(line: string): ClaudeRecord | undefined {
  if (!OF_INTEREST.test(line)) return undefined
  const record = parseJsonLine(line) as Record<string, unknown> | null | undefined
  // Subagents' text is not the agent's own (C4).
  if (record == null || record.isSidechain === true) return undefined
  if (record.type === 'assistant') return readAnswer(record)
  if (record.type === 'user') return readUser(record)
  if (record.type === 'attachment') return readQueued(record) ?? readFeedback(record)
  return undefined
}

function readAnswer(record: object): ClaudeRecord | undefined {
  const parsed = AnswerRecord.safeParse(record).data
  if (parsed === undefined) return undefined
  const { uuid, message } = parsed
  const texts = textsOf(message.content)
  if (message.model === SYNTHETIC || parsed.isApiErrorMessage === true) {
    return { kind: 'failure', uuid, text: texts.join('\n') }
  }
  return {
    kind: 'answer',
    uuid,
    at: Date.parse(parsed.timestamp ?? '') || 0,
    texts,
    toolUses: message.content.flatMap((block) => Use.safeParse(block).data ?? []),
    model: message.model,
    messageId: message.id,
    tokens: message.usage && {
      input: message.usage.input_tokens,
      output: message.usage.output_tokens,
      cacheRead: message.usage.cache_read_input_tokens,
      cacheWrite: message.usage.cache_creation_input_tokens,
    },
  }
}

function readUser(record: object): ClaudeRecord | undefined {
  const parsed = UserRecord.safeParse(record).data
  // A summary of the conversation quotes old messages.
  if (parsed === undefined || parsed.isCompactSummary === true) return undefined
  const { content } = parsed.message
  const toolUseIds = content.flatMap((block) => Result.safeParse(block).data?.tool_use_id ?? [])
  if (toolUseIds.length > 0) return { kind: 'results', toolUseIds }
  const text = textsOf(content).join('\n')
  if (INTERRUPTED.test(text)) return { kind: 'interrupted', uuid: parsed.uuid }
  if (NOT_A_PROMPT.test(text)) return undefined
  const { uuid, parentUuid: parent, isMeta } = parsed
  return { kind: 'prompt', uuid, parent, text, canBeWithdrawn: isMeta !== true }
}

/** A prompt entered while the model works is shown to it between two tool calls. */
function readQueued(record: object): ClaudeRecord | undefined {
  const parsed = Queued.safeParse(record).data
  if (parsed === undefined) return undefined
  const text = textsOf(parsed.attachment.prompt).join('\n')
  return { kind: 'prompt', uuid: parsed.uuid, parent: undefined, text, canBeWithdrawn: false }
}

/** A hook's response at the end of a turn, which starts the next one. */
function readFeedback(record: object): ClaudeRecord | undefined {
  const parsed = Feedback.safeParse(record).data
  if (parsed === undefined) return undefined
  const text = parsed.attachment.content.join('\n')
  return { kind: 'prompt', uuid: parsed.uuid, parent: undefined, text, canBeWithdrawn: false }
}

function textsOf(content: z.output<typeof Content>): string[] {
  return content.flatMap((block) => Text.safeParse(block).data?.text ?? [])
}
