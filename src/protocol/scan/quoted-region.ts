/** The quoted region that the reader is in: fenced code, an echoed block or a CDATA section. Tags in it are only text. */
import { isBlank, isSpace, NEWLINE, RIGHT_BRACKET } from '../ascii.ts'
import { commonLength } from './command-starts.ts'
import { type Fence, prefixBefore } from './markdown-blocks.ts'
import type { TextWindow } from './window.ts'

export type RegionKind = 'fence' | 'response' | 'message' | 'cdata'

const UNKNOWN = Number.POSITIVE_INFINITY

interface QuotedRegion {
  /** Undefined outside of any region. */
  readonly kind: RegionKind | undefined
  /** The line on which the region begins. */
  readonly line: number
  readonly fence: Fence | undefined
  /** The offset after the region; Infinity outside of any region and as long as it is unknown. */
  readonly end: number
  /** The first closing tag in the region. */
  readonly hidden: { start: number; end: number; line: number } | undefined
  enterFence(fence: Fence, line: number): void
  /** Enters a region that ends after the next `terminator`, or at `limit` if there is none before it. */
  enter(kind: RegionKind, from: number, line: number, terminator: Buffer, limit: number): void
  /** Searches the text that has arrived since the last call for the terminator. */
  findEnd(): void
  leave(): void
  hideOpeningTag(): void
  hideClosingTag(start: number, end: number, line: number): void
  /** Whether the region contains one closing tag and no opening tag. */
  hidesOneClosingTag(): boolean
}

export function openQuotedRegion(window: TextWindow): QuotedRegion {
  let terminator: Buffer = Buffer.alloc(0)
  let searched = 0
  let limit = UNKNOWN
  let openingTags = 0
  let closingTags = 0

  function begin(kind: RegionKind, line: number) {
    region.kind = kind
    region.line = line
    region.hidden = undefined
    openingTags = 0
    closingTags = 0
  }

  const region = {
    kind: undefined as RegionKind | undefined,
    line: 0,
    fence: undefined as Fence | undefined,
    end: UNKNOWN,
    hidden: undefined as QuotedRegion['hidden'],

    enterFence(fence: Fence, line: number) {
      begin('fence', line)
      region.fence = fence
    },

    enter(kind: RegionKind, from: number, line: number, newTerminator: Buffer, newLimit: number) {
      begin(kind, line)
      terminator = newTerminator
      limit = newLimit
      searched = from
      region.findEnd()
    },

    findEnd() {
      if (region.kind === undefined || region.kind === 'fence' || region.end !== UNKNOWN) return
      const found = window.bytes.indexOf(terminator, Math.max(0, searched - window.base))
      if (found >= 0) region.end = Math.min(limit, window.base + found + terminator.length)
      else if (window.end >= limit) region.end = limit
      searched = window.end - terminator.length + 1
    },

    leave() {
      region.kind = undefined
      region.fence = undefined
      region.end = UNKNOWN
    },

    hideOpeningTag() {
      openingTags++
    },

    hideClosingTag(start: number, end: number, line: number) {
      region.hidden ??= { start, end, line }
      closingTags++
    },

    hidesOneClosingTag() {
      return region.kind !== undefined && openingTags === 0 && closingTags === 1
    },
  }
  return region
}

/** Orchub's own text, repeated by an agent: response blocks (S1.15, C17) and messages in their frame (C4). */
interface EchoedBlock {
  kind: 'response' | 'message'
  /** The text that ends the block. */
  terminator: Buffer
}

const RESPONSE = Buffer.from('[ORCHESTRATOR RESPONSE]')
const RESPONSE_END = Buffer.from('[END ORCHESTRATOR RESPONSE]')
const MESSAGE = Buffer.from('[ORCHUB MESSAGE ')
const ID_LIMIT = 128
const LINE_LIMIT = 1024

/**
 * The block that begins with the bracket at `at`. A marker counts at the beginning of its line, also after quote marks
 * and list markers, and at the end of a line. In the middle of a line it is only a mention.
 */
export function openingEcho(
  bytes: Buffer,
  at: number,
  isFinal: boolean,
): EchoedBlock | undefined | 'unsettled' {
  const response = commonLength(bytes, at, RESPONSE)
  if (response === RESPONSE.length) return openingResponse(bytes, at, isFinal)
  const message = commonLength(bytes, at, MESSAGE)
  if (message === MESSAGE.length) return openingMessage(bytes, at, isFinal)
  const isCut = at + Math.max(response, message) === bytes.length
  return isCut && !isFinal ? 'unsettled' : undefined
}

function openingResponse(bytes: Buffer, at: number, isFinal: boolean): EchoedBlock | undefined | 'unsettled' {
  const stands = prefixBefore(bytes, at) !== undefined || endsLine(bytes, at + RESPONSE.length, isFinal)
  if (stands === 'unsettled') return stands
  return stands ? { kind: 'response', terminator: RESPONSE_END } : undefined
}

function openingMessage(bytes: Buffer, at: number, isFinal: boolean): EchoedBlock | undefined | 'unsettled' {
  const id = at + MESSAGE.length
  let end = id
  while (end < bytes.length && end - id < ID_LIMIT && bytes[end] !== RIGHT_BRACKET && !isSpace(bytes[end]!))
    end++
  if (end === bytes.length) return isFinal ? undefined : 'unsettled'
  if (end === id || end - id === ID_LIMIT) return undefined
  const stands =
    prefixBefore(bytes, at) !== undefined ||
    (bytes[end] === RIGHT_BRACKET && endsLine(bytes, end + 1, isFinal))
  if (stands === 'unsettled') return stands
  if (!stands) return undefined
  const terminator = Buffer.from(`[END ORCHUB MESSAGE ${bytes.toString('latin1', id, end)}]`, 'latin1')
  return { kind: 'message', terminator }
}

function endsLine(bytes: Buffer, at: number, isFinal: boolean): boolean | 'unsettled' {
  const limit = at + LINE_LIMIT
  let i = at
  while (i < bytes.length && i < limit && isBlank(bytes[i]!)) i++
  if (i === bytes.length && i < limit) return isFinal || 'unsettled'
  return bytes[i] === NEWLINE
}
