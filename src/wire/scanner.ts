/** Commands in free agent text that arrives in chunks of any size (S0.1, C4, C5). The rules: docs/protocol.md. */
import { type KnownCommands, type Problem, problem, type Scanned, type Span } from './codec.ts'
import { decodeCommand, explainProblem } from './decode.ts'
import { openAllowance } from './scan/allowance.ts'
import { openEncoder } from './scan/encoder.ts'
import { isCommandKind, type Kind } from './scan/ledger.ts'
import { openMachine } from './scan/machine.ts'

export type { CommandShape, DiagnosticCode, KnownCommands, Scanned, Span } from './codec.ts'

export interface Scanner {
  /** Everything that can be told now. A cut may be anywhere, inside a UTF-8 sequence too. */
  push(chunk: Uint8Array | string): Scanned[]
  /** Everything else. The text is over then, and so is the scanner. */
  end(): Scanned[]
}

export function createScanner(known: KnownCommands): Scanner {
  const machine = openMachine(receive)
  const encoder = openEncoder()
  const allowance = openAllowance()
  let scanned: Scanned[] = []
  let unlisted: { count: number; span: Span } | undefined
  let isOver = false

  function receive(kind: Kind, start: number, line: number, inner: number, last: number, end: number) {
    if (isCommandKind(kind)) {
      const raw = machine.window.text(start, end)
      const read = decodeCommand({ kind, start, inner, last, end }, raw, machine.window, known)
      if (!read.ok) return allowance.take(start) ? list(read, start, end, line) : omit(start, end, line)
      const { type, fields, ignored, notation } = read
      scanned.push({ ok: true, type, fields, ignored, notation, span: { offset: start, end, line }, raw })
    } else if (allowance.take(start)) {
      list(explainProblem({ kind, start, inner, last, end }, machine, known), start, end, line)
    } else omit(start, end, line)
  }

  function list({ code, message, hint }: Problem, offset: number, end: number, line: number) {
    listOmitted()
    scanned.push({ ok: false, code, message, hint, span: { offset, end, line } })
  }

  function omit(offset: number, end: number, line: number) {
    unlisted ??= { count: 0, span: { offset, end, line } }
    unlisted.count++
  }

  function listOmitted() {
    if (unlisted === undefined) return
    const { count, span } = unlisted
    unlisted = undefined
    const message = `${count} more problems from here on are not listed`
    scanned.push({ ...problem('TOO_MANY_PROBLEMS', message, 'Mend those that are listed first.'), span })
  }

  function take(): Scanned[] {
    const taken = scanned
    scanned = []
    return taken
  }

  return {
    push(chunk) {
      if (isOver) throw new Error('The scanner is at its end; open another one for another text.')
      machine.read(encoder.encode(chunk))
      return take()
    },
    end() {
      if (isOver) return []
      isOver = true
      machine.read(encoder.rest())
      machine.end()
      listOmitted()
      return take()
    },
  }
}

/** A whole text at once. */
export function scanText(text: string | Uint8Array, known: KnownCommands): Scanned[] {
  const scanner = createScanner(known)
  return [...scanner.push(text), ...scanner.end()]
}
