/**
 * What was met so far and is not settled yet, in the order of the text. Inside an open command everything is provisional:
 * its closing tag makes it one command and all within it text; without one, what is within stands by itself.
 *
 * So the text is read once, forwards, whatever it is. Entries are plain numbers in one array, because a hostile
 * megabyte holds tens of thousands of them.
 */
import { MAX_COMMAND_TEXT } from '../codec.ts'

export type Kind =
  | 'element'
  | 'self-closing'
  /** An opening tag that was not closed before the end of the text, or within the limit. */
  | 'unclosed'
  | 'unclosed-too-long'
  /** A broken tag to which no `>` belongs. */
  | 'endless'
  /** A tag without attributes, but with its closing tag. */
  | 'bare'
  | 'object'
  | 'object-unescaped'
  | 'object-broken'
  | 'object-broken-string'
  | 'object-unclosed'
  | 'object-too-large'
  | 'object-quotes'
  | 'in-fence'
  | 'in-inline-code'
  | 'in-response'
  | 'in-message'

/** An entry: its kind, where it starts, on which line, two places of interest within, and where it ends. */
export type Emit = (kind: Kind, start: number, line: number, inner: number, last: number, end: number) => void

const KINDS: readonly Kind[] = [
  'unclosed',
  'element',
  'self-closing',
  'unclosed-too-long',
  'endless',
  'bare',
  'object',
  'object-unescaped',
  'object-broken',
  'object-broken-string',
  'object-unclosed',
  'object-too-large',
  'object-quotes',
  'in-fence',
  'in-inline-code',
  'in-response',
  'in-message',
]
const OPEN = KINDS.indexOf('unclosed')
const ELEMENT = KINDS.indexOf('element')
const SIZE = 6
/** On the stack of open tags: a mention of the tag, which may or may not have a closing tag of its own. */
const MENTION = -1

export interface Ledger {
  /** Whether a command is open. */
  readonly isOpen: boolean
  /** Where the first unsettled entry starts. */
  readonly start: number
  open(start: number, line: number, tagEnd: number): void
  mention(): void
  /** Takes a closing tag; false if nothing is open. */
  close(start: number, end: number): boolean
  add(kind: Kind, start: number, line: number, inner: number, last: number, end: number): void
  /** No closing tag that ends at `at` or before is still to come. */
  expire(at: number): void
  finish(): void
}

export function openLedger(emit: Emit): Ledger {
  let entries: number[] = []
  let first = 0
  let count = 0
  let stack: number[] = []
  let bottom = 0
  /** A closing tag that belongs to a mention if another follows it, and to the command around if none does. */
  let heldStart = -1
  let heldEnd = -1

  function append(kind: number, start: number, line: number, inner: number, last: number, end: number) {
    entries[count] = kind
    entries[count + 1] = start
    entries[count + 2] = line
    entries[count + 3] = inner
    entries[count + 4] = last
    entries[count + 5] = end
    count += SIZE
  }

  function emitUpTo(limit: number) {
    for (; first < limit; first += SIZE) {
      const at = first
      emit(
        KINDS[entries[at]!]!,
        entries[at + 1]!,
        entries[at + 2]!,
        entries[at + 3]!,
        entries[at + 4]!,
        entries[at + 5]!,
      )
    }
  }

  /** Entries before the oldest open command are settled. */
  function settle() {
    while (bottom < stack.length && stack[bottom] === MENTION) bottom++
    if (bottom < stack.length) {
      emitUpTo(stack[bottom]!)
      return
    }
    emitUpTo(count)
    stack.length = 0
    bottom = 0
    first = 0
    count = 0
    // An array that once grew large would keep its size.
    if (entries.length > 4096) entries = []
  }

  function closeCommand(start: number, end: number) {
    let entry = MENTION
    while (entry === MENTION) entry = stack.pop()!
    // All that was noted since the command began is text in its body.
    count = entry + SIZE
    entries[entry] = ELEMENT
    entries[entry + 4] = start
    entries[entry + 5] = end
    if (stack.length === bottom) settle()
  }

  function releaseHeld() {
    if (heldStart < 0) return
    const start = heldStart
    heldStart = -1
    closeCommand(start, heldEnd)
  }

  function isOpen() {
    return stack.length > bottom
  }

  return {
    get isOpen() {
      return isOpen()
    },
    get start() {
      return first < count ? entries[first + 1]! : Number.POSITIVE_INFINITY
    },
    open(start, line, tagEnd) {
      releaseHeld()
      stack.push(count)
      append(OPEN, start, line, tagEnd, -1, tagEnd)
    },
    mention() {
      releaseHeld()
      if (isOpen()) stack.push(MENTION)
    },
    close(start, end) {
      if (heldStart >= 0) {
        stack.pop()
        heldStart = -1
      }
      if (!isOpen()) return false
      if (stack.at(-1) === MENTION) {
        heldStart = start
        heldEnd = end
      } else {
        closeCommand(start, end)
      }
      return true
    },
    add(kind, start, line, inner, last, end) {
      if (kind === 'self-closing' || kind === 'object') releaseHeld()
      append(KINDS.indexOf(kind), start, line, inner, last, end)
      if (!isOpen()) settle()
    },
    expire(at) {
      while (isOpen() && at - entries[stack[bottom]! + 1]! > MAX_COMMAND_TEXT) {
        if (heldStart >= 0) {
          releaseHeld()
          continue
        }
        entries[stack[bottom]!] = KINDS.indexOf('unclosed-too-long')
        bottom++
        settle()
      }
      if (bottom > 1024 && bottom > stack.length / 2) compact()
    },
    finish() {
      releaseHeld()
      emitUpTo(count)
    },
  }

  /** Forgets what was emitted from the front while newer commands are still open. */
  function compact() {
    const dropped = first
    entries = entries.slice(first, count)
    stack = stack.slice(bottom).map((entry) => (entry === MENTION ? MENTION : entry - dropped))
    bottom = 0
    count -= dropped
    first = 0
  }
}
