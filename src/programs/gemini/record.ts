import { z } from 'zod'

const TextPart = z.object({ text: z.string().optional(), functionResponse: z.unknown().optional() })

const GeminiTokens = z.object({
  /** Including cached tokens. */
  input: z.number(),
  output: z.number(),
  cached: z.number().default(0),
  thoughts: z.number().default(0),
})
type GeminiTokens = z.output<typeof GeminiTokens>

const Line = z.object({
  id: z.string(),
  timestamp: z.iso.datetime(),
  type: z.enum(['user', 'gemini', 'info', 'warning', 'error']),
  content: z.union([z.string(), z.array(TextPart)]),
  tokens: GeminiTokens.nullish(),
  model: z.string().optional(),
})

export type GeminiRecord =
  | { readonly kind: 'prompt'; readonly id: string; readonly text: string }
  | {
      readonly kind: 'answer'
      readonly id: string
      readonly at: number
      readonly text: string
      readonly tokens: GeminiTokens | undefined
      readonly model: string
    }
  /** Gemini aborted an answer that repeats itself; if that recurs at once, a dialog opens. */
  | { readonly kind: 'loop'; readonly id: string }
  | { readonly kind: 'cancelled' | 'halted' | 'retried'; readonly id: string }
  /** The conversation was loaded again. */
  | { readonly kind: 'resumed' }

const LOOP = /^System: Potential loop detected\./

/** Messages that Gemini writes for events without a hook. */
const REMARKS = [
  /** A turn was interrupted, or its dialog was denied. */
  ['cancelled', /^Request cancelled\.?$/],
  /** The dialog about a loop was answered. */
  ['halted', /^A potential loop was detected\..*halted\.$/],
  ['retried', /^Loop detection has been disabled/],
] as const

/**
 * Reads a line of a transcript; undefined if irrelevant. After an interruption the program writes the whole
 * conversation again under new ids: those answers are lists of parts, and only the model's own are text.
 */
export function readRecord(line: string): GeminiRecord | undefined {
  if (line.startsWith('{"$set":{"sessionId"')) return { kind: 'resumed' }
  // Other patches of the whole; only lines that are messages themselves are news.
  if (line.startsWith('{"$')) return undefined
  const record = Line.safeParse(parse(line)).data
  if (record === undefined) return undefined
  const { id, type, content } = record
  if (type === 'info') {
    const remark = REMARKS.find(([, words]) => words.test(textOf(content)))
    return remark && { kind: remark[0], id }
  }
  if (type === 'user') {
    const isToolResult =
      typeof content !== 'string' && content.some((part) => part.functionResponse !== undefined)
    if (isToolResult) return undefined
    const text = textOf(content)
    return LOOP.test(text) ? { kind: 'loop', id } : { kind: 'prompt', id, text }
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
