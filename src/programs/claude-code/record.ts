import { z } from 'zod'

/** What one line of the transcript says, as far as we care. */
export type TranscriptRecord =
  | {
      readonly kind: 'answer'
      readonly uuid: string
      readonly at: number
      readonly texts: readonly string[]
      readonly toolUses: readonly ToolUse[]
      readonly model: string
      readonly messageId: string
      readonly tokens: Tokens | undefined
    }
  /** What was put before the model as a user's words: typed, pasted, queued, or a hook's feedback. */
  | {
      readonly kind: 'prompt'
      readonly uuid: string
      /** The record before it in the conversation. */
      readonly parent: string | undefined
      readonly text: string
      readonly canBeTakenBack: boolean
    }
  | { readonly kind: 'results'; readonly toolUseIds: readonly string[] }
  | { readonly kind: 'interrupted'; readonly uuid: string }
  /** The program's own words in the model's place, such as an API error. */
  | { readonly kind: 'failure'; readonly uuid: string; readonly text: string }

export interface ToolUse {
  readonly id: string
  readonly name: string
  readonly input: Readonly<Record<string, unknown>>
}

export interface Tokens {
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

const Answer = z.looseObject({
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
const Said = z.looseObject({
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

/** Lines of these types are by far the longest, and none of our business. */
const OF_INTEREST = /"type":"(?:user|assistant|attachment)"/
/** Written by the program when a conversation is taken up, or in place of an answer that failed. */
const SYNTHETIC = '<synthetic>'
/** What the program itself says in the user's place: output of local commands and of `!` commands. */
const NOT_A_PROMPT = /^\s*<(?:local-command-|command-name>|command-message>|bash-(?:input|stdout|stderr)>)/
const INTERRUPTED = /^\[Request interrupted by user/

/** Undefined for every line that is not part of the main conversation, or cannot be read. */
export function readRecord(line: string): TranscriptRecord | undefined {
  if (!OF_INTEREST.test(line)) return undefined
  const record = parseJson(line)
  // Subagents speak for themselves (C4).
  if (record === undefined || record.isSidechain === true) return undefined
  if (record.type === 'assistant') return readAnswer(record)
  if (record.type === 'user') return readUser(record)
  if (record.type === 'attachment') return readQueued(record) ?? readFeedback(record)
  return undefined
}

function readAnswer(record: object): TranscriptRecord | undefined {
  const parsed = Answer.safeParse(record).data
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

function readUser(record: object): TranscriptRecord | undefined {
  const parsed = Said.safeParse(record).data
  // A summary of the conversation quotes messages of long ago.
  if (parsed === undefined || parsed.isCompactSummary === true) return undefined
  const { content } = parsed.message
  const toolUseIds = content.flatMap((block) => Result.safeParse(block).data?.tool_use_id ?? [])
  if (toolUseIds.length > 0) return { kind: 'results', toolUseIds }
  const text = textsOf(content).join('\n')
  if (INTERRUPTED.test(text)) return { kind: 'interrupted', uuid: parsed.uuid }
  if (NOT_A_PROMPT.test(text)) return undefined
  const { uuid, parentUuid: parent, isMeta } = parsed
  return { kind: 'prompt', uuid, parent, text, canBeTakenBack: isMeta !== true }
}

/** A prompt that was entered while the model worked is put before it between two tool calls. */
function readQueued(record: object): TranscriptRecord | undefined {
  const parsed = Queued.safeParse(record).data
  if (parsed === undefined) return undefined
  const text = textsOf(parsed.attachment.prompt).join('\n')
  return { kind: 'prompt', uuid: parsed.uuid, parent: undefined, text, canBeTakenBack: false }
}

/** What a hook answered at the end of a turn, with which the next one begins. */
function readFeedback(record: object): TranscriptRecord | undefined {
  const parsed = Feedback.safeParse(record).data
  if (parsed === undefined) return undefined
  const text = parsed.attachment.content.join('\n')
  return { kind: 'prompt', uuid: parsed.uuid, parent: undefined, text, canBeTakenBack: false }
}

function textsOf(content: z.output<typeof Content>): string[] {
  return content.flatMap((block) => Text.safeParse(block).data?.text ?? [])
}

function parseJson(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
