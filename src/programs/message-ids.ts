import type { Turn } from '../runtimes/runtime.ts'

/** Nowhere but in an envelope (src/wire/envelope.ts): in a message's own content the bracket is another character (C17). */
const MARKER = /\[(END )?ORCHUB MESSAGE (\S+?)\]/g
const BEGINNING = '[ORCHUB MESSAGE '

/** The ids of the messages whose whole envelopes are in the text: a beginning alone may be a quotation, or cut off. */
export function messageIdsIn(text: string): string[] {
  const begun = new Set<string>()
  const whole = new Set<string>()
  for (const [, end, id] of text.matchAll(MARKER)) {
    if (end === undefined) begun.add(id!)
    else if (begun.has(id!)) whole.add(id!)
  }
  return [...whole]
}

/** False for most lines of a transcript, which then need not be read. */
export function mayHoldMessages(line: string): boolean {
  return line.includes(BEGINNING)
}

/**
 * The turn, or as many of its messages as fit, from the first one on and with what stands before them. Undefined where
 * not even that fits. What stands behind the last message is part of it: no turn is cut there.
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

/** Whether a prompt is the turn: by the ids of its messages, or by its text when it has none. */
export function holdsTurn(prompt: string, turn: Turn): boolean {
  if (turn.ids.length === 0) return plain(prompt).includes(plain(turn.text))
  const found = new Set(messageIdsIn(prompt))
  return turn.ids.every((id) => found.has(id))
}

/** An input box turns tabs into spaces, and trims. */
function plain(text: string): string {
  return text
    .replace(/[\u0000-\u001F\u007F-\u009F]/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
}
