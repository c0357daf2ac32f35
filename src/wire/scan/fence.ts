/** Fenced code (CommonMark, with more indentation allowed, because agents put fences into lists). */
import { BACKTICK, isBlank, NEWLINE } from '../ascii.ts'
import { prefixBefore } from './lines.ts'

export interface Fence {
  mark: number
  length: number
  column: number
  quotes: number
}

/** How far the rest of a fence's line is looked at. */
const LINE_LIMIT = 1024

/** The fence that a run of three or more marks at `at` opens. */
export function openingFence(bytes: Buffer, at: number, isFinal: boolean): Fence | undefined | 'unsettled' {
  const prefix = prefixBefore(bytes, at)
  if (prefix === undefined) return undefined
  const mark = bytes[at]!
  const info = endOfRun(bytes, at)
  const limit = info + LINE_LIMIT
  let end = bytes.indexOf(NEWLINE, info)
  if (end < 0) {
    if (!isFinal && bytes.length < limit) return 'unsettled'
    end = bytes.length
  }
  if (mark === BACKTICK) {
    const tick = bytes.indexOf(BACKTICK, info)
    // Such a line is inline code: `​``code``` and so on.
    if (tick >= 0 && tick < Math.min(end, limit)) return undefined
  }
  return { mark, length: info - at, column: prefix.column, quotes: prefix.quotes }
}

/** Where the line ends with which a run of marks at `at` closes the fence; undefined if it does not. */
export function closingFence(
  bytes: Buffer,
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
  const isLong = i - at >= fence.length
  const limit = Math.min(bytes.length, i + LINE_LIMIT)
  if (isLong || i === bytes.length) {
    while (i < limit && isBlank(bytes[i]!)) i++
    if (i === bytes.length) return isFinal ? (isLong ? i : undefined) : 'unsettled'
  }
  return isLong && bytes[i] === NEWLINE ? i : undefined
}

function endOfRun(bytes: Buffer, at: number): number {
  const mark = bytes[at]
  let i = at + 1
  while (i < bytes.length && bytes[i] === mark) i++
  return i
}
