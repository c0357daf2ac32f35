/**
 * Finds where commands begin and end in a stream of agent text. It goes from landmark to landmark, once, forwards; what
 * it cannot tell yet makes it wait for more input, at most for as much as a command may be long.
 */
import { BACKTICK, DOUBLE_QUOTE, HYPHEN, LEFT_BRACKET, LESS_THAN, NEWLINE, SLASH, TILDE } from '../ascii.ts'
import { MAX_COMMAND_TEXT } from '../codec.ts'
import { openingEcho } from './echo.ts'
import { closingFence, openingFence } from './fence.ts'
import { cdata, closingTag, keyWord, messageHeader, objectHeader, openingTag, tagWord } from './headers.ts'
import { openInlineCode } from './inline-code.ts'
import { BLOCK, CDATA, CDATA_END, TAG_WORD, WORD_MIDDLE } from './landmark.ts'
import { findLandmarks } from './landmark-search.ts'
import { type Emit, type Kind, openLedger } from './ledger.ts'
import { PREFIX_LIMIT } from './lines.ts'
import { type ObjectOutcome, openObjectReader } from './object-reader.ts'
import { openQuotation, type QuotationKind } from './quotation.ts'
import { openTagReader } from './tag-reader.ts'
import { openWindow, type Window } from './window.ts'

export interface HiddenClosingTag {
  kind: QuotationKind
  line: number
  closingLine: number
}

export interface Machine {
  /** Where the text of what is emitted can be read, during the call. */
  readonly window: Window
  /** Of a command that stays open at the end: the line of a closing tag that a quotation hides, and what kind that is. */
  hidden(): HiddenClosingTag | undefined
  read(chunk: Uint8Array): void
  end(): void
}

const SKIPPED: Record<QuotationKind, Kind | undefined> = {
  fence: 'in-fence',
  response: 'in-response',
  message: 'in-message',
  cdata: undefined,
}

const OBJECTS: Record<Exclude<ObjectOutcome, 'unsettled' | 'complete'>, Kind> = {
  unescaped: 'object-unescaped',
  broken: 'object-broken',
  'broken-string': 'object-broken-string',
  unclosed: 'object-unclosed',
  'too-large': 'object-too-large',
}

const OPENING_LENGTH = TAG_WORD.length + 1
const CLOSING_LENGTH = TAG_WORD.length + 2

export function openMachine(emit: Emit): Machine {
  const window = openWindow()
  const ledger = openLedger(emit)
  const inlineCode = openInlineCode(window)
  const quotation = openQuotation(window)
  const tag = openTagReader(window)
  const object = openObjectReader(window)
  /** Landmarks before `anchor` are dealt with; it is on line `anchorLine`. */
  let anchor = 0
  let anchorLine = 1
  /** Before this offset, landmarks are part of something that was read already. */
  let cursor = 0
  /** The same for what a JSON command holds, where only a closing tag of the command around it still counts. */
  let objectEnd = 0
  let waitingFor: 'nothing' | 'tag' | 'object' | 'paragraph' = 'nothing'
  let waitingAt = 0
  let waitingLine = 0
  /** The last tag that was merely mentioned, if nothing else was met since. */
  let bareStart = -1
  let bareLine = 0
  let bareEnd = 0

  function walk(isFinal: boolean) {
    while (resume(isFinal)) {
      if (anchor >= window.end) return
      const to = Math.min(window.end, anchor + BLOCK)
      const from = anchor
      const line = anchorLine
      const found = findLandmarks(window.bytes, from - window.base, to - window.base)
      for (let i = 0; i < found.count; i++) {
        const at = from + found.places[2 * i]!
        if (at < cursor) continue
        const atLine = line + found.places[2 * i + 1]!
        if (meet(at, atLine, isFinal)) continue
        anchor = at
        anchorLine = atLine
        return
      }
      anchor = to
      anchorLine = line + found.lines
    }
  }

  /** Goes on with what was unfinished; false if it still is. */
  function resume(isFinal: boolean): boolean {
    quotation.seek()
    switch (waitingFor) {
      case 'tag':
        return readTag(waitingLine, isFinal)
      case 'object':
        return readObject(waitingLine, isFinal)
      case 'paragraph':
        if (inlineCode.at(waitingAt, isFinal) === 'unsettled') return false
        waitingFor = 'nothing'
        return true
      default:
        return true
    }
  }

  function wait(what: typeof waitingFor, at: number, line: number): false {
    waitingFor = what
    waitingAt = at
    waitingLine = line
    return false
  }

  /** Deals with a landmark; false if more input is needed for that. */
  function meet(at: number, line: number, isFinal: boolean): boolean {
    if (at >= quotation.end) leaveQuotation(quotation.end)
    if (at < cursor) return true
    const { bytes, base } = window
    switch (bytes[at - base]) {
      case BACKTICK:
      case TILDE:
        return meetFence(at, line, isFinal)
      case LEFT_BRACKET:
        return meetEcho(at, line, isFinal)
      case LESS_THAN:
        return meetCdata(at, line, isFinal)
      case DOUBLE_QUOTE:
        return meetMessage(at, line, isFinal)
    }
    return bytes[at - base + WORD_MIDDLE] === HYPHEN ? meetTag(at, line, isFinal) : meetKey(at, line, isFinal)
  }

  function meetFence(at: number, line: number, isFinal: boolean): boolean {
    const { bytes, base } = window
    if (quotation.fence !== undefined) {
      const end = closingFence(bytes, at - base, quotation.fence, isFinal)
      if (end === 'unsettled') return false
      if (end !== undefined) leaveQuotation(base + end)
    } else if (quotation.kind === undefined && at >= objectEnd) {
      const fence = openingFence(bytes, at - base, isFinal)
      if (fence === 'unsettled') return false
      if (fence !== undefined) {
        quotation.enterFence(fence, line)
        cursor = at + fence.length
      }
    }
    return true
  }

  function meetEcho(at: number, line: number, isFinal: boolean): boolean {
    if (quotation.kind !== undefined || at < objectEnd) return true
    const echo = openingEcho(window.bytes, at - window.base, isFinal)
    if (echo === 'unsettled') return false
    if (echo !== undefined) quotation.enter(echo.kind, at, line, echo.terminator, at + MAX_COMMAND_TEXT)
    return true
  }

  function meetCdata(at: number, line: number, isFinal: boolean): boolean {
    if (quotation.kind !== undefined || at < objectEnd || !ledger.isOpen) return true
    const begins = cdata(window.bytes, at - window.base, isFinal)
    if (begins === 'unsettled') return false
    if (!begins) return true
    const code = inlineCode.onLine(at, cursor, isFinal)
    const limit = ledger.start() + MAX_COMMAND_TEXT
    if (code === 'text') quotation.enter('cdata', at + CDATA.length, line, CDATA_END, limit)
    return code !== 'unsettled'
  }

  /** Meets the word `orc-command`, which is the name of a tag behind `<` or `</`. */
  function meetTag(word: number, line: number, isFinal: boolean): boolean {
    const { bytes, base } = window
    const at = word - base
    const isOpening = bytes[at - 1] === LESS_THAN
    if (!isOpening && (bytes[at - 1] !== SLASH || bytes[at - 2] !== LESS_THAN)) return true
    const stands = tagWord(bytes, at, isFinal)
    if (stands !== true) return stands === false
    return isOpening ? meetOpeningTag(word - 1, line, isFinal) : meetClosingTag(word - 2, line, isFinal)
  }

  function meetOpeningTag(at: number, line: number, isFinal: boolean): boolean {
    const nameEnd = at + OPENING_LENGTH
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
    ledger.expire(start)
    cursor = start + OPENING_LENGTH
    switch (outcome) {
      case 'open':
        ledger.open(start, line, end)
        consume(end)
        break
      case 'self-closing':
        ledger.add('self-closing', start, line, end, end, end)
        consume(end)
        break
      case 'endless':
        ledger.add('endless', start, line, end, end, end)
        break
      case 'mention':
        if (ledger.isOpen) ledger.mention()
        else {
          bareStart = start
          bareLine = line
          bareEnd = end
        }
        break
    }
    return true
  }

  function meetClosingTag(at: number, line: number, isFinal: boolean): boolean {
    const { base } = window
    const found = closingTag(window.bytes, at + CLOSING_LENGTH - base, isFinal)
    if (found === 'unsettled') return false
    if (found === undefined) return true
    const end = base + found
    if (quotation.kind !== undefined) {
      quotation.hideClosingTag(at, end, line)
      return true
    }
    ledger.expire(end)
    if (ledger.isOpen) {
      const code = inlineCode.onLine(at, cursor, isFinal)
      if (code !== 'text') return code === 'code'
      ledger.close(at, end)
      consume(end)
    } else if (bareStart >= 0) {
      ledger.add('bare', bareStart, bareLine, bareEnd, bareEnd, bareEnd)
      bareStart = -1
    }
    return true
  }

  /** Meets the word `orc_command`, which is the key of a JSON command if a quotation mark and a brace precede it. */
  function meetKey(word: number, lineOfWord: number, isFinal: boolean): boolean {
    const { bytes, base } = window
    const stands = keyWord(bytes, word - base, isFinal)
    if (stands !== true) return stands === false
    const header = objectHeader(bytes, word - base, isFinal)
    if (header === 'unsettled') return false
    if (header === undefined || base + header.brace < Math.max(objectEnd, cursor)) return true
    const at = base + header.brace
    const value = base + header.value
    const line = lineOfWord - countLines(bytes, header.brace, header.key)
    const isSkipped = skip(at, line, value, true, isFinal)
    if (isSkipped !== false) return isSkipped === true
    if (!header.hasProperQuotes) {
      ledger.add('object-quotes', at, line, base + header.key, value, value)
      cursor = value
      return true
    }
    object.begin(at, value)
    return readObject(line, isFinal)
  }

  /** Meets the key `"type"`, with which a message as the seed writes it begins. */
  function meetMessage(key: number, lineOfKey: number, isFinal: boolean): boolean {
    const { bytes, base } = window
    if (key < objectEnd) return true
    const header = messageHeader(bytes, key - base, isFinal)
    if (header === 'unsettled') return false
    if (header === undefined || base + header.brace < cursor) return true
    const at = base + header.brace
    const line = lineOfKey - countLines(bytes, header.brace, key - base)
    const isSkipped = skip(at, line, base + header.value, true, isFinal)
    if (isSkipped !== false) return isSkipped === true
    object.beginBare(at)
    return readObject(line, isFinal)
  }

  function readObject(line: number, isFinal: boolean): boolean {
    const outcome = object.read(isFinal)
    if (outcome === 'unsettled') return wait('object', object.start, line)
    waitingFor = 'nothing'
    const { start, end, problemAt, isBare, keys, outerKeys } = object
    ledger.expire(start)
    if (outcome === 'complete') ledger.add(isBare ? 'message' : 'object', start, line, keys, outerKeys, end)
    else ledger.add(OBJECTS[outcome], start, line, problemAt < 0 ? end : problemAt, end, end)
    cursor = start + 1
    objectEnd = end
    inlineCode.restart(end)
    bareStart = -1
    return true
  }

  /** Whether a command that begins here is only quoted, and noted as such. */
  function skip(
    at: number,
    line: number,
    end: number,
    isNoted: boolean,
    isFinal: boolean,
  ): boolean | 'unsettled' {
    let kind: Kind | undefined = 'in-inline-code'
    if (quotation.kind !== undefined) {
      kind = SKIPPED[quotation.kind]
      quotation.hideOpeningTag()
    } else {
      const code = inlineCode.at(at, isFinal)
      if (code === 'unsettled') wait('paragraph', at, line)
      if (code !== 'code') return code === 'unsettled' ? code : false
    }
    if (isNoted && kind !== undefined) ledger.add(kind, at, line, quotation.line, end, end)
    cursor = at + 1
    return true
  }

  function consume(end: number) {
    cursor = end
    objectEnd = 0
    inlineCode.restart(end)
    bareStart = -1
  }

  function leaveQuotation(end: number) {
    quotation.leave()
    cursor = Math.max(cursor, end)
    inlineCode.restart(cursor)
  }

  /** Lets go of all that no decision can depend on any more. */
  function forget() {
    if (anchor >= quotation.end) leaveQuotation(quotation.end)
    ledger.expire(anchor)
    const needed = Math.min(anchor - PREFIX_LIMIT - 1, ledger.start())
    window.keepFrom(quotation.kind === undefined ? Math.min(needed, inlineCode.advance(anchor)) : needed)
  }

  return {
    window,
    hidden() {
      const { kind, line, hidden } = quotation
      return kind === undefined || hidden === undefined ? undefined : { kind, line, closingLine: hidden.line }
    },
    read(chunk) {
      for (let at = 0; at < chunk.length; at += BLOCK) {
        window.append(chunk.length <= BLOCK ? chunk : chunk.subarray(at, at + BLOCK))
        walk(false)
        forget()
      }
    },
    end() {
      walk(true)
      if (window.end >= quotation.end) leaveQuotation(quotation.end)
      // The text ends within a quotation that holds the one closing tag: its own end was forgotten.
      const { hidden } = quotation
      const isForgotten = ledger.isOpen && quotation.hidesOneClosingTag()
      if (isForgotten && hidden !== undefined) ledger.close(hidden.start, hidden.end)
      ledger.finish()
    },
  }
}

function countLines(bytes: Uint8Array, from: number, to: number): number {
  let lines = 0
  for (let i = from; i < to; i++) if (bytes[i] === NEWLINE) lines++
  return lines
}
