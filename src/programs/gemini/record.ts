import { z } from 'zod'

const TextPart = z.object({ text: z.string().optional(), functionResponse: z.unknown().optional() })

const Tokens = z.object({
  /** With what was cached. */
  input: z.number(),
  output: z.number(),
  cached: z.number().default(0),
  thoughts: z.number().default(0),
})
export type Tokens = z.output<typeof Tokens>

const Line = z.object({
  id: z.string(),
  timestamp: z.iso.datetime(),
  type: z.enum(['user', 'gemini', 'info', 'warning', 'error']),
  content: z.union([z.string(), z.array(TextPart)]),
  tokens: Tokens.nullish(),
  model: z.string().optional(),
})

export type TranscriptRecord =
  | { readonly kind: 'prompt'; readonly id: string; readonly text: string }
  | {
      readonly kind: 'answer'
      readonly id: string
      readonly at: number
      readonly text: string
      readonly tokens: Tokens | undefined
      readonly model: string
    }
  | { readonly kind: 'cancelled'; readonly id: string }

/** Its words for a turn that was interrupted, or whose dialog was answered with a no. */
const CANCELLED = /^Request cancelled\.?$/

/**
 * One line of a transcript; undefined for what says nothing. After an interruption the program writes the whole
 * conversation down once more under new ids: those answers are lists of parts, and only what comes from the model
 * is a text.
 */
export function readRecord(line: string): TranscriptRecord | undefined {
  // Patches of the whole record; only lines that are messages themselves are news.
  if (line.startsWith('{"$')) return undefined
  const record = Line.safeParse(parse(line)).data
  if (record === undefined) return undefined
  const { id, type, content } = record
  if (type === 'info') return CANCELLED.test(textOf(content)) ? { kind: 'cancelled', id } : undefined
  if (type === 'user') {
    const isToolResult =
      typeof content !== 'string' && content.some((part) => part.functionResponse !== undefined)
    return isToolResult ? undefined : { kind: 'prompt', id, text: textOf(content) }
  }
  if (type !== 'gemini' || typeof content !== 'string') return undefined
  return {
    ...{ kind: 'answer', id, at: Date.parse(record.timestamp), text: content },
    ...{ tokens: record.tokens ?? undefined, model: record.model ?? '' },
  }
}

function textOf(content: string | z.output<typeof TextPart>[]): string {
  return typeof content === 'string' ? content : content.map(({ text }) => text ?? '').join('')
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}
