import type { Turn } from '../runtimes/runtime.ts'

/**
 * Only envelopes contain it (src/protocol/response.ts): in a message's own content the bracket is replaced (C17).
 */
const MARKER = /\[(END )?ORCHUB MESSAGE (\S+?)\]/g
const BEGINNING = '[ORCHUB MESSAGE '

/**
 * Ids of the messages whose complete envelopes are in the text: an opening line alone may be a quotation, or
 * cut off.
 */
export function messageIdsIn(text: string): string[] {
  const begun = new Set<string>()
  const whole = new Set<string>()
  for (const [, end, id] of text.matchAll(MARKER)) {
    if (end === undefined) begun.add(id!)
    else if (begun.has(id!)) whole.add(id!)
  }
  return [...whole]
}

/** False for most lines of a transcript, which then need not be parsed. */
export function mayHoldMessages(line: string): boolean {
  return line.includes(BEGINNING)
}

/**
 * The turn, or as many of its leading messages as fit, including the text before them. Undefined if not even
 * one fits. Text after the last message belongs to it: no turn is cut there.
 */
export function leadingPart(turn: Turn, maxBytes: number): Turn | undefined {
  if (Buffer.byteLength(turn.text) <= maxBytes) return turn
  for (let count = turn.ids.length - 1; count > 0; count--) {
    const ids = turn.ids.slice(0, count)
    const last = `[END ORCHUB MESSAGE ${ids.at(-1)}]`
    const text = turn.text.slice(0, turn.text.indexOf(last) + last.length)
    if (Buffer.byteLength(text) <= maxBytes && messageIdsIn(text).length === count) return { text, ids }
  }
  return undefined
}

/** Whether a prompt is the turn: compares message ids, or the text if it has none. */
export function holdsTurn(prompt: string, turn: Turn): boolean {
  if (turn.ids.length === 0) return plain(prompt).includes(plain(turn.text))
  const found = new Set(messageIdsIn(prompt))
  return turn.ids.every((id) => found.has(id))
}

/** Input boxes turn tabs into spaces, and trim. */
function plain(text: string): string {
  return text
    .replace(/[\u0000-\u001F\u007F-\u009F]/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
}
