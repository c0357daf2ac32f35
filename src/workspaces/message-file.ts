import { hash } from 'node:crypto'
import { z } from 'zod'
import { AGENT_NAME } from '../base/agent.ts'
import { MESSAGE_TYPES } from '../runs/plan.ts'
import { type Problem, problem } from './problem.ts'

/** S4.16. */
const QueueMessage = z.object({
  from: z.string().regex(AGENT_NAME),
  to: z.string().regex(AGENT_NAME),
  timestamp: z.string(),
  type: z.enum(MESSAGE_TYPES),
  content: z.unknown(),
})
export type QueueMessage = z.output<typeof QueueMessage>

export interface ReceivedMessage extends QueueMessage {
  /** The name of its file: the same message has it always, so that it acts once (C25). */
  readonly file: string
  readonly number: number
  /** Hash of its text: once a message is removed, another one may reuse its name. */
  readonly sha256: string
}

const NAME = /^(.+)_to_(.+)_(\d{3,9})\.json$/
/** The largest number with nine digits, which is what a name has room for. */
export const HIGHEST_NUMBER = 999_999_999

/** The number in the name of a message's file. */
export function numberOf(file: string): number | undefined {
  const match = NAME.exec(file)
  return match === null ? undefined : Number(match[3])
}

export function nameOf({ from, to }: Pick<QueueMessage, 'from' | 'to'>, number: number): string {
  return `${from}_to_${to}_${String(number).padStart(3, '0')}.json`
}

export type ParsedMessage = { ok: true; message: ReceivedMessage } | { ok: false; problem: Problem }

export function parseMessage(file: string, content: string): ParsedMessage {
  const refused = (code: 'torn' | 'invalid', why: string): ParsedMessage => ({
    ok: false,
    problem: problem(code, `messages/${file}`, why),
  })
  // A line end that comes a moment later makes no other message.
  const text = content.replace(/^\ufeff/, '').trim()
  let raw: unknown
  try {
    raw = JSON.parse(text)
  } catch {
    return refused('torn', 'is not whole JSON')
  }
  const parsed = QueueMessage.safeParse(raw)
  if (!parsed.success) {
    const { path, message } = parsed.error.issues[0]!
    return refused('invalid', `is no message: ${path.join('.') || 'it'}: ${message}`)
  }
  const number = numberOf(file)
  // An agent's name may hold `_to_` itself, so the name of the file is made again and compared.
  const digits = NAME.exec(file)?.[3]
  if (number === undefined || file !== `${parsed.data.from}_to_${parsed.data.to}_${digits}.json`) {
    return refused('invalid', 'says another sender or recipient than its name does')
  }
  return { ok: true, message: { ...parsed.data, file, number, sha256: hash('sha256', text) } }
}
