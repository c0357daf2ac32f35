/**
 * What was met so far and is not settled yet, in the order of the text. Inside an open command everything is provisional:
 * its closing tag makes it one command and all within it text; without one, what is within stands by itself.
 *
 * So the text is read once, forwards, whatever it is. Entries are plain numbers, because a hostile megabyte holds tens
 * of thousands of them.
 */
import { MAX_COMMAND_TEXT } from '../codec.ts'

const KINDS = [
  /** An opening tag that was not closed before the end of the text, or within the limit. */
  'unclosed',
  'unclosed-too-long',
  'element',
  'self-closing',
  /** A broken tag to which no `>` belongs. */
  'endless',
  /** A tag without attributes, but with its closing tag. */
  'bare',
  'object',
  /** A JSON command as the seed writes its messages, without `orc_command` around it. */
  'message',
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
] as const

export type Kind = (typeof KINDS)[number]
export type CommandKind = 'element' | 'self-closing' | 'object' | 'message'

/** Whether it may be a command, once its text is read; the others are problems for certain. */
export function isCommandKind(kind: Kind): kind is CommandKind {
  return kind === 'element' || kind === 'self-closing' || isObject(kind)
}

function isObject(kind: Kind): kind is 'object' | 'message' {
  return kind === 'object' || kind === 'message'
}

/** An entry: its kind, where it starts, on which line, two more numbers that depend on the kind, and where it ends. */
export type Emit = (kind: Kind, start: number, line: number, inner: number, last: number, end: number) => void

const UNCLOSED = KINDS.indexOf('unclosed')
const TOO_LONG = KINDS.indexOf('unclosed-too-long')
const ELEMENT = KINDS.indexOf('element')
/** On the stack of open tags: a mention of the tag, which may or may not have a closing tag of its own. */
const MENTION = -1
const SIZE = 6
/** More numbers than these are not kept for later use. */
const LARGE = 8192

export interface Ledger {
  /** Whether a command is open. */
  readonly isOpen: boolean
  /** Where the first unsettled entry starts. No getter: with one, every ledger would be of a shape of its own, and slow. */
  start(): number
  open(start: number, line: number, tagEnd: number): void
  mention(): void
  close(start: number, end: number): void
  add(kind: Kind, start: number, line: number, inner: number, last: number, end: number): void
  /** No closing tag that ends at `at` or before is still to come. */
  expire(at: number): void
  finish(): void
}

export function openLedger(emit: Emit): Ledger {
  let entries = new Float64Array(16 * SIZE)
  let first = 0
  let count = 0
  /** The entries of the open tags; those before `bottom` are given up. */
  let stack = new Int32Array(16)
  let bottom = 0
  let depth = 0
  /** A closing tag that belongs to a mention if another follows it, and to the command around if none does. */
  let heldStart = -1
  let heldEnd = -1

  function append(kind: number, start: number, line: number, inner: number, last: number, end: number) {
    if (count === entries.length) entries = grown(entries, new Float64Array(2 * count))
    entries[count] = kind
    entries[count + 1] = start
    entries[count + 2] = line
    entries[count + 3] = inner
    entries[count + 4] = last
    entries[count + 5] = end
    count += SIZE
  }

  function push(entry: number) {
    if (depth === stack.length) stack = grown(stack, new Int32Array(2 * depth))
    stack[depth++] = entry
    ledger.isOpen = true
  }

  function emitUpTo(limit: number) {
    for (; first < limit; first += SIZE) {
      const at = first
      const kind = KINDS[entries[at]!]!
      emit(kind, entries[at + 1]!, entries[at + 2]!, entries[at + 3]!, entries[at + 4]!, entries[at + 5]!)
    }
  }

  /** Entries before the oldest open command are settled. */
  function settle() {
    while (bottom < depth && stack[bottom] === MENTION) bottom++
    ledger.isOpen = bottom < depth
    if (ledger.isOpen) {
      emitUpTo(stack[bottom]!)
      return
    }
    emitUpTo(count)
    bottom = 0
    depth = 0
    first = 0
    count = 0
    if (entries.length > LARGE) entries = new Float64Array(16 * SIZE)
  }

  function closeCommand(start: number, end: number) {
    let entry = MENTION
    while (entry === MENTION) entry = stack[--depth]!
    // All that was noted since the command began is text in its body.
    count = entry + SIZE
    entries[entry] = ELEMENT
    entries[entry + 4] = start
    entries[entry + 5] = end
    if (depth === bottom) settle()
  }

  function releaseHeld() {
    if (heldStart < 0) return
    const start = heldStart
    heldStart = -1
    closeCommand(start, heldEnd)
  }

  /** Moves what is left to the front, when most of it is gone there. */
  function compact() {
    const dropped = first
    entries.copyWithin(0, first, count)
    count -= dropped
    first = 0
    for (let i = bottom; i < depth; i++) {
      const entry = stack[i]!
      stack[i - bottom] = entry === MENTION ? MENTION : entry - dropped
    }
    depth -= bottom
    bottom = 0
  }

  const ledger = {
    isOpen: false,
    start() {
      return first < count ? entries[first + 1]! : Number.POSITIVE_INFINITY
    },
    open(start: number, line: number, tagEnd: number) {
      releaseHeld()
      push(count)
      append(UNCLOSED, start, line, tagEnd, tagEnd, tagEnd)
    },
    mention() {
      releaseHeld()
      if (ledger.isOpen) push(MENTION)
    },
    close(start: number, end: number) {
      if (heldStart >= 0) {
        depth--
        heldStart = -1
      }
      if (stack[depth - 1] !== MENTION) return closeCommand(start, end)
      heldStart = start
      heldEnd = end
    },
    add(kind: Kind, start: number, line: number, inner: number, last: number, end: number) {
      if (kind === 'self-closing' || isObject(kind)) releaseHeld()
      if (ledger.isOpen) append(KINDS.indexOf(kind), start, line, inner, last, end)
      else emit(kind, start, line, inner, last, end)
    },
    expire(at: number) {
      while (ledger.isOpen && at - entries[stack[bottom]! + 1]! > MAX_COMMAND_TEXT) {
        if (heldStart >= 0) releaseHeld()
        else {
          entries[stack[bottom]!] = TOO_LONG
          bottom++
          settle()
        }
      }
      if (first > 1024 && first > count / 2) compact()
    },
    finish() {
      releaseHeld()
      emitUpTo(count)
    },
  }
  return ledger
}

function grown<Numbers extends Float64Array | Int32Array>(old: Numbers, larger: Numbers): Numbers {
  larger.set(old)
  return larger
}
