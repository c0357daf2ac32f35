/**
 * Finds where commands begin and end in a stream of agent text. It reads the text once, forwards, and examines only the
 * bytes that may begin something: `<`, `{`, `[`, a backtick, a tilde.
 *
 * Three states change independently of each other.
 *
 * Waiting: what a chunk ended in the middle of. `resume` continues it with the next chunk.
 *   nothing → tag        an opening tag without its `>`      → nothing: the tag reader has an outcome
 *   nothing → object     a JSON command without its `}`      → nothing: the JSON reader has an outcome
 *   nothing → paragraph  a command after an open backtick   → nothing: the paragraph ended, or the backtick's partner came
 *   If only a few bytes are missing, the state stays `nothing` and the position stays where it is.
 *
 * Quoted region (quoted-region.ts): regions do not nest; starts of others are ignored until the region is left.
 *   none → fence     an opening fence               → none: its closing fence
 *   none → response  `[ORCHESTRATOR RESPONSE]`      → none: `[END ORCHESTRATOR RESPONSE]`, or MAX_COMMAND_TEXT bytes later
 *   none → message   `[ORCHUB MESSAGE id]`          → none: `[END ORCHUB MESSAGE id]`, or MAX_COMMAND_TEXT bytes later
 *   none → cdata     `<![CDATA[` in an open command → none: `]]>`, or where the command becomes too long
 *   Inside a region commands are reported as skipped, and closing tags are counted but close nothing.
 *
 * Open commands (pending-commands.ts): a stack of opening tags. An opening tag pushes, a closing tag pops. When the oldest
 * one is closed, becomes longer than MAX_COMMAND_TEXT or meets the end of the text, the entries up to the next one are emitted.
 */
import {
  BACKTICK,
  EXCLAMATION_MARK,
  LEFT_BRACE,
  LEFT_BRACKET,
  LESS_THAN,
  NEWLINE,
  SLASH,
  TILDE,
} from '../ascii.ts'
import { MAX_COMMAND_TEXT } from '../codec.ts'
import {
  CDATA_LENGTH,
  closingTag,
  isCdata,
  isTagName,
  objectStart,
  openingTag,
  TAG_NAME,
} from './command-starts.ts'
import { openInlineCode } from './inline-code.ts'
import { type JsonOutcome, openJsonReader } from './json-reader.ts'
import { closingFence, openingFence, PREFIX_LIMIT } from './markdown-blocks.ts'
import { type Candidate, type CandidateKind, openPendingCommands } from './pending-commands.ts'
import { openingEcho, openQuotedRegion, type RegionKind } from './quoted-region.ts'
import { openTagReader } from './tag-reader.ts'
import { openTextWindow, type TextWindow } from './window.ts'

export interface HiddenClosingTag {
  kind: RegionKind
  line: number
  closingLine: number
}

interface StateMachine {
  /** The text of a candidate can be read from here while it is emitted. */
  readonly window: TextWindow
  /** The closing tag of an unclosed command, if a quoted region that has not ended hides one. */
  hiddenClosingTag(): HiddenClosingTag | undefined
  read(chunk: Uint8Array): void
  end(): void
}

/** Chunks are read in pieces of this size, so that a large chunk is not copied into the window at once. */
const PIECE = 65_536

const SKIPPED: Record<RegionKind, CandidateKind | undefined> = {
  fence: 'in-fence',
  response: 'in-response',
  message: 'in-message',
  cdata: undefined,
}

const JSON_PROBLEMS: Record<Exclude<JsonOutcome, 'unsettled' | 'complete'>, CandidateKind> = {
  unescaped: 'object-unescaped',
  broken: 'object-broken',
  'broken-string': 'object-broken-string',
  unclosed: 'object-unclosed',
  'too-large': 'object-too-large',
}

const CDATA_END = Buffer.from(']]>')

/** Bytes to stop at. A lookup is faster than comparing each byte of the text with all of them. */
const STOPS = new Uint8Array(256)
for (const byte of [NEWLINE, LESS_THAN, LEFT_BRACE, LEFT_BRACKET, BACKTICK, TILDE]) STOPS[byte] = 1

export function openStateMachine(emit: (candidate: Candidate) => void): StateMachine {
  const window = openTextWindow()
  const pending = openPendingCommands(emit)
  const inlineCode = openInlineCode(window)
  const region = openQuotedRegion(window)
  const tag = openTagReader(window)
  const object = openJsonReader(window)
  /** Everything before `position` has been examined. */
  let position = 0
  let lineOfPosition = 1
  /** Bytes before `cursor` belong to something that was read already, so nothing begins there. */
  let cursor = 0
  /** Bytes before `objectEnd` belong to a JSON command: only the closing tag of the command around it counts there. */
  let objectEnd = 0
  let waitingFor: 'nothing' | 'tag' | 'object' | 'paragraph' = 'nothing'
  let waitingAt = 0
  let waitingLine = 0
  /** The last tag without attributes outside of commands, if only text followed it. */
  let mention: { start: number; line: number; end: number } | undefined

  function advance(isFinal: boolean) {
    region.findEnd()
    if (!resume(isFinal)) return
    const { bytes, base } = window
    let at = position - base
    let line = lineOfPosition
    for (; at < bytes.length; at++) {
      const byte = bytes[at]!
      if (STOPS[byte] === 0) continue
      if (byte === NEWLINE) line++
      else if (base + at >= cursor && !examine(base + at, line, isFinal)) break
    }
    position = base + at
    lineOfPosition = line
  }

  /** Continues what the last chunk left unfinished; false if it is still unfinished. */
  function resume(isFinal: boolean): boolean {
    switch (waitingFor) {
      case 'tag':
        return readTag(waitingLine, isFinal)
      case 'object':
        return readObject(waitingLine, isFinal)
      case 'paragraph':
        if (inlineCode.at(waitingAt, isFinal) === 'unsettled') return false
        waitingFor = 'nothing'
        return true
      case 'nothing':
        return true
    }
  }

  function wait(what: typeof waitingFor, at: number, line: number): false {
    waitingFor = what
    waitingAt = at
    waitingLine = line
    return false
  }

  /** Handles whatever begins at `at`; false if that takes more input. */
  function examine(at: number, line: number, isFinal: boolean): boolean {
    if (at >= region.end) leaveRegion(region.end)
    if (at < cursor) return true
    switch (window.bytes[at - window.base]) {
      case LESS_THAN:
        return examineTag(at, line, isFinal)
      case LEFT_BRACE:
        return examineObject(at, line, isFinal)
      case LEFT_BRACKET:
        return examineEcho(at, line, isFinal)
      default:
        return examineFence(at, line, isFinal)
    }
  }

  function examineFence(at: number, line: number, isFinal: boolean): boolean {
    const { bytes, base } = window
    if (region.fence !== undefined) {
      const end = closingFence(bytes, at - base, region.fence, isFinal)
      if (end === 'unsettled') return false
      if (end !== undefined) leaveRegion(base + end)
    } else if (region.kind === undefined && at >= objectEnd) {
      const fence = openingFence(bytes, at - base, isFinal)
      if (fence === 'unsettled') return false
      if (fence !== undefined) {
        region.enterFence(fence, line)
        cursor = at + fence.length
      }
    }
    return true
  }

  function examineEcho(at: number, line: number, isFinal: boolean): boolean {
    if (region.kind !== undefined || at < objectEnd) return true
    const echo = openingEcho(window.bytes, at - window.base, isFinal)
    if (echo === 'unsettled') return false
    if (echo !== undefined) region.enter(echo.kind, at, line, echo.terminator, at + MAX_COMMAND_TEXT)
    return true
  }

  function examineTag(at: number, line: number, isFinal: boolean): boolean {
    const { bytes, base } = window
    const next = bytes[at - base + 1]
    if (next === undefined) return isFinal
    if (next === EXCLAMATION_MARK) return examineCdata(at, line, isFinal)
    const name = at + (next === SLASH ? 2 : 1)
    const isOurs = isTagName(bytes, name - base, isFinal)
    if (isOurs !== true) return isOurs === false
    const nameEnd = name + TAG_NAME.length
    return next === SLASH
      ? examineClosingTag(at, nameEnd, line, isFinal)
      : examineOpeningTag(at, nameEnd, line, isFinal)
  }

  function examineCdata(at: number, line: number, isFinal: boolean): boolean {
    if (region.kind !== undefined || at < objectEnd || !pending.hasOpen()) return true
    const begins = isCdata(window.bytes, at - window.base, isFinal)
    if (begins !== true) return begins === false
    const code = inlineCode.onLine(at, cursor, isFinal)
    const limit = pending.start() + MAX_COMMAND_TEXT
    if (code === 'text') region.enter('cdata', at + CDATA_LENGTH, line, CDATA_END, limit)
    return code !== 'unsettled'
  }

  function examineOpeningTag(at: number, nameEnd: number, line: number, isFinal: boolean): boolean {
    const begins = openingTag(window.bytes, nameEnd - window.base, isFinal)
    if (begins === 'unsettled') return false
    if (begins === false || at < objectEnd) return true
    const isSkipped = skip(at, line, nameEnd, begins === true, isFinal)
    if (isSkipped !== false) return isSkipped === true
    tag.begin(at)
    return readTag(line, isFinal)
  }

  function readTag(line: number, isFinal: boolean): boolean {
    const outcome = tag.read(isFinal)
    if (outcome === 'unsettled') return wait('tag', tag.start, line)
    waitingFor = 'nothing'
    const { start, end } = tag
    pending.expire(start)
    cursor = start + 1 + TAG_NAME.length
    switch (outcome) {
      case 'open':
        pending.open(start, line, end)
        consume(end)
        break
      case 'self-closing':
        pending.add({ kind: 'self-closing', start, line, inner: end, last: end, end })
        consume(end)
        break
      case 'endless':
        pending.add({ kind: 'endless', start, line, inner: end, last: end, end })
        break
      case 'mention':
        if (pending.hasOpen()) pending.mention()
        else mention = { start, line, end }
        break
    }
    return true
  }

  function examineClosingTag(at: number, nameEnd: number, line: number, isFinal: boolean): boolean {
    const { base } = window
    const found = closingTag(window.bytes, nameEnd - base, isFinal)
    if (found === 'unsettled') return false
    if (found === undefined) return true
    const end = base + found
    if (region.kind !== undefined) {
      region.hideClosingTag(at, end, line)
      return true
    }
    pending.expire(end)
    if (pending.hasOpen()) {
      const code = inlineCode.onLine(at, cursor, isFinal)
      if (code !== 'text') return code === 'code'
      pending.close(at, end)
      consume(end)
    } else if (mention !== undefined) {
      pending.add({ kind: 'bare', ...mention, inner: mention.end, last: mention.end })
      mention = undefined
    }
    return true
  }

  function examineObject(at: number, line: number, isFinal: boolean): boolean {
    if (at < objectEnd) return true
    const { bytes, base } = window
    const found = objectStart(bytes, at - base, isFinal)
    if (found === 'unsettled') return false
    if (found === undefined) return true
    const value = base + found.value
    const isSkipped = skip(at, line, value, true, isFinal)
    if (isSkipped !== false) return isSkipped === true
    if (!found.hasJsonQuotes) {
      pending.add({
        kind: 'object-quotes',
        start: at,
        line,
        inner: base + found.key,
        last: value,
        end: value,
      })
      cursor = value
      return true
    }
    if (found.form === 'wrapped') object.beginWrapped(at, value)
    else object.beginMessage(at)
    return readObject(line, isFinal)
  }

  function readObject(line: number, isFinal: boolean): boolean {
    const outcome = object.read(isFinal)
    if (outcome === 'unsettled') return wait('object', object.start, line)
    waitingFor = 'nothing'
    const { start, end, problemAt, isMessage, keys, outerKeys } = object
    pending.expire(start)
    if (outcome === 'complete')
      pending.add({ kind: isMessage ? 'message' : 'object', start, line, inner: keys, last: outerKeys, end })
    else {
      const inner = problemAt < 0 ? end : problemAt
      pending.add({ kind: JSON_PROBLEMS[outcome], start, line, inner, last: end, end })
    }
    cursor = start + 1
    objectEnd = end
    inlineCode.restart(end)
    mention = undefined
    return true
  }

  /** Whether the command that begins at `at` is only quoted. If so, it is reported as skipped when `isReported`. */
  function skip(
    at: number,
    line: number,
    end: number,
    isReported: boolean,
    isFinal: boolean,
  ): boolean | 'unsettled' {
    let kind: CandidateKind | undefined = 'in-inline-code'
    if (region.kind !== undefined) {
      kind = SKIPPED[region.kind]
      region.hideOpeningTag()
    } else {
      const code = inlineCode.at(at, isFinal)
      if (code === 'unsettled') wait('paragraph', at, line)
      if (code !== 'code') return code === 'unsettled' ? code : false
    }
    if (isReported && kind !== undefined)
      pending.add({ kind, start: at, line, inner: region.line, last: end, end })
    cursor = at + 1
    return true
  }

  function consume(end: number) {
    cursor = end
    objectEnd = 0
    inlineCode.restart(end)
    mention = undefined
  }

  function leaveRegion(end: number) {
    region.leave()
    cursor = Math.max(cursor, end)
    inlineCode.restart(cursor)
  }

  /** Releases the text that no later decision needs. */
  function release() {
    if (position >= region.end) leaveRegion(region.end)
    pending.expire(position)
    const needed = Math.min(position - PREFIX_LIMIT - 1, pending.start())
    window.keepFrom(region.kind === undefined ? Math.min(needed, inlineCode.advance(position)) : needed)
  }

  return {
    window,
    hiddenClosingTag() {
      const { kind, line, hidden } = region
      return kind === undefined || hidden === undefined ? undefined : { kind, line, closingLine: hidden.line }
    },
    read(chunk) {
      for (let at = 0; at < chunk.length; at += PIECE) {
        window.append(chunk.subarray(at, at + PIECE))
        advance(false)
        release()
      }
    },
    end() {
      advance(true)
      if (window.end >= region.end) leaveRegion(region.end)
      // The text ends in a region that hides the only closing tag: the agent forgot to end the region.
      const { hidden } = region
      if (pending.hasOpen() && region.hidesOneClosingTag() && hidden !== undefined)
        pending.close(hidden.start, hidden.end)
      pending.finish()
    },
  }
}
