/** A stretch of text in which tags are only text: fenced code, an echoed block, a CDATA section. */
import type { Fence } from './fence.ts'
import type { Window } from './window.ts'

export type QuotationKind = 'fence' | 'response' | 'message' | 'cdata'

export interface Quotation {
  readonly kind: QuotationKind | undefined
  readonly line: number
  readonly fence: Fence | undefined
  /** Where it ends: infinitely far as long as that is not known, or there is none. */
  readonly end: number
  enterFence(fence: Fence, line: number): void
  /** Ends behind the terminator, or at the limit if there is none before it. */
  enter(kind: QuotationKind, start: number, line: number, terminator: string, limit: number): void
  /** Looks for the terminator in what has arrived. */
  seek(): void
  leave(): void
  hideOpeningTag(): void
  hideClosingTag(start: number, end: number, line: number): void
  /** The closing tag hidden in it, if it hides one and no opening tag. */
  onlyClosingTag(): { start: number; end: number } | undefined
  /** The line of the first closing tag that it hides. */
  readonly hiddenLine: number | undefined
}

export function openQuotation(window: Window): Quotation {
  let kind: QuotationKind | undefined
  let line = 0
  let fence: Fence | undefined
  let end = Number.POSITIVE_INFINITY
  let terminator = ''
  let searched = 0
  let limit = Number.POSITIVE_INFINITY
  let openingTags = 0
  let closingTags = 0
  let closing = { start: 0, end: 0, line: 0 }

  function begin(newKind: QuotationKind, newLine: number) {
    kind = newKind
    line = newLine
    end = Number.POSITIVE_INFINITY
    openingTags = 0
    closingTags = 0
  }

  function seek() {
    if (kind === undefined || kind === 'fence' || end !== Number.POSITIVE_INFINITY) return
    const from = Math.max(0, searched - window.base)
    const found = window.bytes.indexOf(terminator, from, 'latin1')
    if (found >= 0) end = Math.min(limit, window.base + found + terminator.length)
    else if (window.end >= limit) end = limit
    searched = window.end - terminator.length + 1
  }

  return {
    get kind() {
      return kind
    },
    get line() {
      return line
    },
    get fence() {
      return fence
    },
    get end() {
      return end
    },
    enterFence(newFence, newLine) {
      begin('fence', newLine)
      fence = newFence
    },
    enter(newKind, start, newLine, newTerminator, newLimit) {
      begin(newKind, newLine)
      terminator = newTerminator
      limit = newLimit
      searched = start
      seek()
    },
    seek,
    leave() {
      kind = undefined
      fence = undefined
      end = Number.POSITIVE_INFINITY
    },
    hideOpeningTag() {
      openingTags++
    },
    hideClosingTag(start, tagEnd, tagLine) {
      if (closingTags === 0) closing = { start, end: tagEnd, line: tagLine }
      closingTags++
    },
    onlyClosingTag() {
      return kind !== undefined && openingTags === 0 && closingTags === 1 ? closing : undefined
    },
    get hiddenLine() {
      return kind !== undefined && closingTags > 0 ? closing.line : undefined
    },
  }
}
