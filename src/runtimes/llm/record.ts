import { z } from 'zod'

const number = z.int().nonnegative()
const call = z.object({
  id: z.string(),
  name: z.string(),
  input: z.record(z.string(), z.unknown()),
  invalid: z.string().optional(),
})

/** How a turn ended. The model learns of every end except `answered`. */
const ENDS = ['answered', 'interrupted', 'max_steps', 'refused', 'too_long'] as const
export type LlmTurnEnd = (typeof ENDS)[number]

/** A line of the conversation file. Numbers ascend and serve as keys. */
export const LogRecord = z.discriminatedUnion('type', [
  /** Starts a turn with its input. */
  z.object({
    type: z.literal('user'),
    n: number,
    at: z.number(),
    text: z.string(),
    ids: z.array(z.string()),
  }),
  /** A notice between two steps of a turn. */
  z.object({ type: z.literal('notice'), n: number, text: z.string() }),
  z.object({
    type: z.literal('assistant'),
    n: number,
    at: z.number(),
    text: z.string(),
    calls: z.array(call),
    /** The model that produced `parts`; no other model can use them. */
    by: z.string(),
    parts: z.unknown().optional(),
    finish: z.enum(['stop', 'length']),
  }),
  /** Result of the call at `index` in the last response. */
  z.object({
    type: z.literal('result'),
    n: number,
    index: number,
    text: z.string(),
    isError: z.boolean(),
    handedOut: z.array(z.string()),
  }),
  /** Every command in the text of response `of` was executed and answered. */
  z.object({ type: z.literal('said'), of: number }),
  z.object({ type: z.literal('end'), n: number, how: z.enum(ENDS) }),
])
export type LogRecord = z.output<typeof LogRecord>

export type RecordOf<Type extends LogRecord['type']> = Extract<LogRecord, { type: Type }>

/** Undefined if the line is incomplete or not ours. */
export function parseRecord(line: string): LogRecord | undefined {
  try {
    return LogRecord.safeParse(JSON.parse(line)).data
  } catch {
    return undefined
  }
}
