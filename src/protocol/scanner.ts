/** Finds commands in free agent text that arrives in chunks of any size (S0.1, C4, C5). Rules: docs/protocol-scanning.md. */
import {
  type Decoded,
  type KnownCommands,
  MAX_COMMAND_BYTES,
  type ScanFailure,
  type Scanned,
  type ScanProblem,
  scanProblem,
  type TextSpan,
  thousands,
} from './codec.ts'
import { explain } from './explain.ts'
import { decodeMessage, decodeObject } from './json/decode.ts'
import { type Candidate, type CommandKind, isCommandKind } from './scan/pending-commands.ts'
import { openStateMachine } from './scan/state-machine.ts'
import type { TextWindow } from './scan/window.ts'
import { decodeElement } from './xml/decode.ts'

export type { CommandShape, DiagnosticCode, KnownCommands, Scanned, TextSpan } from './codec.ts'

export interface Scanner {
  /** Returns everything that is certain by now. The text may be cut anywhere, even inside a UTF-8 sequence. */
  push(chunk: Uint8Array | string): Scanned[]
  /** Returns the rest. The scanner cannot be used any more. */
  end(): Scanned[]
}

export function createScanner(known: KnownCommands): Scanner {
  const machine = openStateMachine(receive)
  const encode = openEncoder()
  const mayList = openProblemLimit()
  let scanned: Scanned[] = []
  let unlisted: { count: number; span: TextSpan } | undefined
  let isOver = false

  function receive(candidate: Candidate) {
    const { kind, start, end, line } = candidate
    const span: TextSpan = { offset: start, end, line }
    if (isCommandKind(kind)) {
      const raw = machine.window.text(start, end)
      const decoded = decodeCommand(kind, candidate, raw, machine.window, known)
      if (decoded.ok) scanned.push({ ok: true, ...decoded.value, span, raw })
      else if (mayList(start)) list(decoded.error, span)
      else omit(span)
    } else if (mayList(start))
      list(explain(kind, candidate, machine.window, machine.hiddenClosingTag, known).error, span)
    else omit(span)
  }

  function list(problem: ScanProblem, span: TextSpan) {
    listOmitted()
    scanned.push({ ok: false, ...problem, span })
  }

  function omit(span: TextSpan) {
    unlisted ??= { count: 0, span }
    unlisted.count++
  }

  function listOmitted() {
    if (unlisted === undefined) return
    const { count, span } = unlisted
    unlisted = undefined
    const message = `${count} more problems from here on are not listed`
    const hint = 'Fix the listed problems first.'
    scanned.push({ ok: false, code: 'TOO_MANY_PROBLEMS', message, hint, span })
  }

  function take(): Scanned[] {
    const taken = scanned
    scanned = []
    return taken
  }

  return {
    push(chunk) {
      if (isOver) throw new Error('The scanner has ended; create another one for another text.')
      machine.read(encode(chunk))
      return take()
    },
    end() {
      if (isOver) return []
      isOver = true
      machine.read(encode(new Uint8Array()))
      machine.end()
      listOmitted()
      return take()
    },
  }
}

/** Scans a whole text at once. */
export function scanText(text: string | Uint8Array, known: KnownCommands): Scanned[] {
  const scanner = createScanner(known)
  return [...scanner.push(text), ...scanner.end()]
}

/** Turns chunks into UTF-8 bytes. A string may end inside a surrogate pair, whose other half begins the next chunk. */
function openEncoder(): (chunk: Uint8Array | string) => Uint8Array {
  let half = ''
  return (chunk) => {
    const before = half
    half = ''
    if (typeof chunk !== 'string') return before === '' ? chunk : Buffer.concat([Buffer.from(before), chunk])
    const text = before + chunk
    const last = text.charCodeAt(text.length - 1)
    const isHalf = last >= 0xd800 && last <= 0xdbff
    if (isHalf) half = text.slice(-1)
    return Buffer.from(isHalf ? text.slice(0, -1) : text)
  }
}

const PROBLEMS_AT_ONCE = 1000
const BYTES_PER_PROBLEM = 1024

/**
 * Whether a problem at an offset is listed: the first thousand, then one per KiB of text. Otherwise a flood of broken tags
 * would become a flood of responses to the agent that wrote them.
 */
function openProblemLimit(): (offset: number) => boolean {
  let left = PROBLEMS_AT_ONCE
  let last = 0
  return (offset) => {
    if (offset > last) {
      left = Math.min(PROBLEMS_AT_ONCE, left + (offset - last) / BYTES_PER_PROBLEM)
      last = offset
    }
    if (left < 1) return false
    left--
    return true
  }
}

function decodeCommand(
  kind: CommandKind,
  { start, inner, last, end }: Candidate,
  raw: string,
  window: TextWindow,
  known: KnownCommands,
): Decoded {
  const size = end - start
  switch (kind) {
    case 'object':
      return checkSize(decodeObject(raw, inner, last, known), size)
    case 'message':
      return checkSize(decodeMessage(raw, last, known), size)
    case 'self-closing':
      return checkSize(decodeElement(raw, undefined, known), size)
    case 'element':
      return checkSize(decodeElement(window.text(start, inner), window.text(inner, last), known), size)
  }
}

/** Checks the length of each field (C20). Text grows at most threefold: an invalid byte becomes U+FFFD, three bytes. */
function checkSize(decoded: Decoded, bytes: number): Decoded {
  if (!decoded.ok || 3 * bytes <= MAX_COMMAND_BYTES) return decoded
  for (const [name, value] of Object.entries(decoded.value.fields)) {
    const size = Buffer.byteLength(value)
    if (size > MAX_COMMAND_BYTES) return tooLarge(decoded.value.type, name, size)
  }
  return decoded
}

function tooLarge(type: string, name: string, bytes: number): ScanFailure {
  return scanProblem(
    'TOO_LARGE',
    `The ${name} of ${type} is ${thousands(bytes)} bytes long; at most ${thousands(MAX_COMMAND_BYTES)} are allowed`,
    'Send it in parts, or put it into a file and send its path. Nothing was cut, and nothing was done.',
  )
}
