/** Chunks as the machine takes them: UTF-8 bytes, not too many at once. */
import { BLOCK } from './landmark.ts'

export interface Pieces {
  of(chunk: Uint8Array | string): Iterable<Uint8Array>
  /** What a string left over that ended inside a character. */
  rest(): Iterable<Uint8Array>
}

export function openPieces(): Pieces {
  /** The first half of a surrogate pair whose second half is in the next chunk. */
  let half = ''

  function encode(chunk: Uint8Array | string): Uint8Array {
    if (typeof chunk !== 'string') return half === '' ? chunk : Buffer.concat([Buffer.from(take()), chunk])
    const text = take() + chunk
    const last = text.charCodeAt(text.length - 1)
    const isHalf = last >= 0xd800 && last <= 0xdbff
    if (isHalf) half = text.slice(-1)
    return Buffer.from(isHalf ? text.slice(0, -1) : text)
  }

  function take(): string {
    const taken = half
    half = ''
    return taken
  }

  return {
    *of(chunk) {
      const bytes = encode(chunk)
      for (let at = 0; at < bytes.length; at += BLOCK) yield bytes.subarray(at, at + BLOCK)
    },
    *rest() {
      if (half !== '') yield Buffer.from(take())
    },
  }
}
