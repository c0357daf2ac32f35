/** A stretch of text in which tags are only text: fenced code, an echoed block, a CDATA section. */
import type { Fence } from './fence.ts'
import { indexOfBytes } from './search.ts'
import type { Window } from './window.ts'

export type QuotationKind = 'fence' | 'response' | 'message' | 'cdata'

const NOWHERE = Number.POSITIVE_INFINITY

export interface Quotation {
  /** Undefined outside of any. */
  readonly kind: QuotationKind | undefined
  /** On which line it begins. */
  readonly line: number
  readonly fence: Fence | undefined
  /** Where it ends; infinitely far as long as that is not known, and outside of any. */
  readonly end: number
  /** The first closing tag that it hides. */
  readonly hidden: { start: number; end: number; line: number } | undefined
  enterFence(fence: Fence, line: number): void
  /** Ends behind the next terminator, or at the limit if there is none before it. */
  enter(kind: QuotationKind, from: number, line: number, terminator: Buffer, limit: number): void
  /** Looks for the terminator in what has arrived. */
  seek(): void
  leave(): void
  hideOpeningTag(): void
  hideClosingTag(start: number, end: number, line: number): void
  /** Whether it hides one closing tag and no opening tag. */
  hidesOneClosingTag(): boolean
}

export function openQuotation(window: Window): Quotation {
  let terminator: Buffer = Buffer.alloc(0)
  let searched = 0
  let limit = NOWHERE
  let openingTags = 0
  let closingTags = 0

  function begin(kind: QuotationKind, line: number) {
    quotation.kind = kind
    quotation.line = line
    quotation.hidden = undefined
    openingTags = 0
    closingTags = 0
  }

  const quotation = {
    kind: undefined as QuotationKind | undefined,
    line: 0,
    fence: undefined as Fence | undefined,
    end: NOWHERE,
    hidden: undefined as Quotation['hidden'],

    enterFence(fence: Fence, line: number) {
      begin('fence', line)
      quotation.fence = fence
    },

    enter(kind: QuotationKind, from: number, line: number, newTerminator: Buffer, newLimit: number) {
      begin(kind, line)
      terminator = newTerminator
      limit = newLimit
      searched = from
      quotation.seek()
    },

    seek() {
      const isSought = quotation.kind !== undefined && quotation.kind !== 'fence' && quotation.end === NOWHERE
      if (!isSought) return
      const from = Math.max(0, searched - window.base)
      const found = indexOfBytes(window.bytes, terminator, from)
      if (found >= 0) quotation.end = Math.min(limit, window.base + found + terminator.length)
      else if (window.end >= limit) quotation.end = limit
      searched = window.end - terminator.length + 1
    },

    leave() {
      quotation.kind = undefined
      quotation.fence = undefined
      quotation.end = NOWHERE
    },

    hideOpeningTag() {
      openingTags++
    },

    hideClosingTag(start: number, end: number, line: number) {
      quotation.hidden ??= { start, end, line }
      closingTags++
    },

    hidesOneClosingTag() {
      return quotation.kind !== undefined && openingTags === 0 && closingTags === 1
    },
  }
  return quotation
}
