import { isUtf8 } from 'node:buffer'
import type { Result } from '../base/result.ts'
import type { Problem } from './problem.ts'

/** Refuses text that is not UTF-8: guessing another encoding could put wrong names into rules. */
export function decodeUtf8(source: string | Uint8Array): Result<string, Problem> {
  if (typeof source === 'string') return { ok: true, value: source.replace(/^\uFEFF/, '') }
  if (isUtf8(source)) return { ok: true, value: new TextDecoder().decode(source) }
  const [line, column] = firstBadByte(source)
  const utf16 = (source[0] === 0xff && source[1] === 0xfe) || (source[0] === 0xfe && source[1] === 0xff)
  const hint = utf16
    ? 'The file looks like UTF-16; save it as UTF-8.'
    : 'Save the file as UTF-8 and check the characters at this position.'
  return { ok: false, error: { line, column, path: '', message: 'The file is not UTF-8', hint } }
}

/** In UTF-8, a line feed is never part of another character, so each line can be checked on its own. */
function firstBadByte(bytes: Uint8Array): [line: number, column: number] {
  let start = 0
  for (let line = 1; ; line++) {
    const feed = bytes.indexOf(0x0a, start)
    const end = feed === -1 ? bytes.length : feed
    const piece = bytes.subarray(start, end)
    if (!isUtf8(piece)) return [line, validPrefix(piece) + 1]
    if (feed === -1) return [line, 1]
    start = end + 1
  }
}

/** Counts the characters before the first invalid byte. */
function validPrefix(piece: Uint8Array): number {
  let [low, high] = [0, piece.length]
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if (completeCharacters(piece.subarray(0, middle))) low = middle
    else high = middle - 1
  }
  return new TextDecoder().decode(piece.subarray(0, low), { stream: true }).length
}

function completeCharacters(prefix: Uint8Array): boolean {
  try {
    // Streaming accepts a character that the end of the prefix cuts off.
    new TextDecoder('utf-8', { fatal: true }).decode(prefix, { stream: true })
    return true
  } catch {
    return false
  }
}
