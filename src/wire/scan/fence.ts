/** Fenced code (CommonMark, with more indentation allowed, because agents put fences into lists). */
import { BACKTICK, isBlank, NEWLINE } from '../ascii.ts'
import { prefixBefore } from './lines.ts'

export interface Fence {
  mark: number
  length: number
  column: number
  quotes: number
}

/** How far the marks of a fence, and the rest of its line, are looked at. */
const RUN_LIMIT = 1024
const LINE_LIMIT = 1024

/** The fence that a run of marks at `at` opens. */
export function openingFence(
  bytes: Uint8Array,
  at: number,
  isFinal: boolean,
): Fence | undefined | 'unsettled' {
  const prefix = prefixBefore(bytes, at)
  if (prefix === undefined) return undefined
  const mark = bytes[at]!
  const info = endOfRun(bytes, at)
  if (info - at < 3) return info < bytes.length || isFinal ? undefined : 'unsettled'
  const limit = Math.min(bytes.length, info + LINE_LIMIT)
  let i = info
  for (; i < limit && bytes[i] !== NEWLINE; i++) {
    // A backtick behind three others on one line makes inline code of them.
    if (bytes[i] === BACKTICK && mark === BACKTICK) return undefined
  }
  if (i === bytes.length && i < info + LINE_LIMIT && !isFinal) return 'unsettled'
  return { mark, length: info - at, column: prefix.column, quotes: prefix.quotes }
}

/** Where the line ends with which a run of marks at `at` closes the fence; undefined if it does not. */
export function closingFence(
  bytes: Uint8Array,
  at: number,
  fence: Fence,
  isFinal: boolean,
): number | undefined | 'unsettled' {
  if (bytes[at] !== fence.mark) return undefined
  const prefix = prefixBefore(bytes, at)
  if (prefix === undefined || prefix.hasListMarker) return undefined
  // Deeper than the fence itself, it is part of the code that is shown.
  if (prefix.quotes > fence.quotes || prefix.column > fence.column + 3) return undefined
  let i = endOfRun(bytes, at)
  if (i === bytes.length && !isFinal) return 'unsettled'
  if (i - at < fence.length) return undefined
  const limit = i + LINE_LIMIT
  while (i < bytes.length && i < limit && isBlank(bytes[i]!)) i++
  if (i === bytes.length) return isFinal ? i : i < limit ? 'unsettled' : undefined
  return bytes[i] === NEWLINE ? i : undefined
}

function endOfRun(bytes: Uint8Array, at: number): number {
  const mark = bytes[at]
  const end = Math.min(bytes.length, at + RUN_LIMIT)
  let i = at + 1
  while (i < end && bytes[i] === mark) i++
  return i
}
