import { z } from 'zod'

const number = z.int().nonnegative()
const call = z.object({
  id: z.string(),
  name: z.string(),
  input: z.record(z.string(), z.unknown()),
  invalid: z.string().optional(),
})

/** How a turn ended. Only after `answered` the model need not be told. */
export const ENDS = ['answered', 'interrupted', 'max_steps', 'refused', 'too_long'] as const
export type TurnEnd = (typeof ENDS)[number]

/** A line of the conversation file. Numbers count up: what is done goes by them. */
export const LogRecord = z.discriminatedUnion('type', [
  /** Begins a turn: what was put before the agent. */
  z.object({
    type: z.literal('user'),
    n: number,
    at: z.number(),
    text: z.string(),
    ids: z.array(z.string()),
  }),
  /** Told in passing, between two steps of a turn. */
  z.object({ type: z.literal('notice'), n: number, text: z.string() }),
  z.object({
    type: z.literal('assistant'),
    n: number,
    at: z.number(),
    text: z.string(),
    calls: z.array(call),
    /** Of which model; `parts` are of use to no other. */
    by: z.string(),
    parts: z.unknown().optional(),
    finish: z.enum(['stop', 'length']),
  }),
  /** Of the call at that place in the last answer. */
  z.object({
    type: z.literal('result'),
    n: number,
    index: number,
    text: z.string(),
    isError: z.boolean(),
    handedOut: z.array(z.string()),
  }),
  /** All that answer number `of` asks for in its text was carried out, and answered. */
  z.object({ type: z.literal('said'), of: number }),
  z.object({ type: z.literal('end'), n: number, how: z.enum(ENDS) }),
])
export type LogRecord = z.output<typeof LogRecord>

export type RecordOf<Type extends LogRecord['type']> = Extract<LogRecord, { type: Type }>

/** Undefined for a line that is torn or not ours. */
export function parseRecord(line: string): LogRecord | undefined {
  try {
    return LogRecord.safeParse(JSON.parse(line)).data
  } catch {
    return undefined
  }
}
