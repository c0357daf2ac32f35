/**
 * Candidates that are not decided yet, in text order. While a command is open, everything inside it is provisional: its
 * closing tag turns all of it into the command's text, and without a closing tag each candidate stands by itself. This
 * is what makes one forward pass enough; rereading the text after each unclosed tag would take quadratic time.
 */
import { MAX_COMMAND_TEXT } from '../codec.ts'

export type CommandKind = 'element' | 'self-closing' | 'object' | 'message'

export type CandidateKind = CommandKind | ProblemKind

export type ProblemKind =
  /** An opening tag without a closing tag. */
  | 'unclosed'
  /** An opening tag without a closing tag within MAX_COMMAND_TEXT bytes. */
  | 'unclosed-too-long'
  /** A broken tag to which no `>` belongs. */
  | 'endless'
  /** A tag without attributes, but with a closing tag. */
  | 'bare'
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

/** A stretch of text that is a command or looks like one. */
export interface Candidate {
  kind: CandidateKind
  start: number
  line: number
  /** End of the opening tag; line of the quoted region; offset of a JSON problem; or number of keys in a JSON command. */
  inner: number
  /** Start of the closing tag; or number of keys around a JSON command. */
  last: number
  end: number
}

/** Whether the candidate may be a command, which its text decides. The other kinds are problems for certain. */
export function isCommandKind(kind: CandidateKind): kind is CommandKind {
  return kind === 'element' || kind === 'self-closing' || kind === 'object' || kind === 'message'
}

/** On the stack: a tag without attributes, which may or may not have a closing tag of its own. */
const MENTION = undefined

/** Emitted candidates are dropped from the front of the arrays in batches of at least this many. */
const DROP_AT_LEAST = 1024

interface PendingCommands {
  hasOpen(): boolean
  /** Offset of the first pending candidate, Infinity if there is none. */
  start(): number
  open(start: number, line: number, tagEnd: number): void
  mention(): void
  close(start: number, end: number): void
  add(candidate: Candidate): void
  /** Gives up open commands that no closing tag after `at` can close, because they would be too long. */
  expire(at: number): void
  finish(): void
}

export function openPendingCommands(emit: (candidate: Candidate) => void): PendingCommands {
  let candidates: Candidate[] = []
  /** Candidates before `first` have been emitted. */
  let first = 0
  let stack: (Candidate | typeof MENTION)[] = []
  /** Stack entries before `bottom` have been given up. */
  let bottom = 0
  /** A closing tag that belongs to a mention if another one follows, and otherwise to the command around the mention. */
  let held: { start: number; end: number } | undefined

  function hasOpen(): boolean {
    return bottom < stack.length
  }

  /** Emits everything before the oldest open command. */
  function settle() {
    while (hasOpen() && stack[bottom] === MENTION) bottom++
    const oldest = stack[bottom]
    while (first < candidates.length && candidates[first] !== oldest) emit(candidates[first++]!)
    if (!hasOpen()) {
      candidates = []
      stack = []
      first = 0
      bottom = 0
    } else if (first >= DROP_AT_LEAST && first > candidates.length / 2) {
      candidates = candidates.slice(first)
      stack = stack.slice(bottom)
      first = 0
      bottom = 0
    }
  }

  function closeCommand(start: number, end: number) {
    let command: Candidate | typeof MENTION
    do command = stack.pop()
    while (command === MENTION)
    // Everything found since the command began is text in its body.
    while (candidates[candidates.length - 1] !== command) candidates.pop()
    command.kind = 'element'
    command.last = start
    command.end = end
    if (stack.length === bottom) settle()
  }

  function releaseHeld() {
    if (held === undefined) return
    const { start, end } = held
    held = undefined
    closeCommand(start, end)
  }

  return {
    hasOpen,
    start() {
      return first < candidates.length ? candidates[first]!.start : Number.POSITIVE_INFINITY
    },
    open(start, line, tagEnd) {
      releaseHeld()
      const command: Candidate = { kind: 'unclosed', start, line, inner: tagEnd, last: tagEnd, end: tagEnd }
      candidates.push(command)
      stack.push(command)
    },
    mention() {
      releaseHeld()
      if (hasOpen()) stack.push(MENTION)
    },
    close(start, end) {
      if (held !== undefined) {
        stack.pop()
        held = undefined
      }
      if (stack[stack.length - 1] === MENTION) held = { start, end }
      else closeCommand(start, end)
    },
    add(candidate) {
      if (isCommandKind(candidate.kind)) releaseHeld()
      if (hasOpen()) candidates.push(candidate)
      else emit(candidate)
    },
    expire(at) {
      while (hasOpen()) {
        const oldest = stack[bottom]!
        if (at - oldest.start <= MAX_COMMAND_TEXT) return
        if (held !== undefined) releaseHeld()
        else {
          oldest.kind = 'unclosed-too-long'
          bottom++
          settle()
        }
      }
    },
    finish() {
      releaseHeld()
      while (first < candidates.length) emit(candidates[first++]!)
    },
  }
}
