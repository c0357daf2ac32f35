/**
 * The part of the stream that is still needed. Offsets are those of the whole stream; `bytes[0]` is the byte at `base`.
 * Appending costs the length of what is appended, whatever is kept: room is doubled, and reused when it runs out.
 */
export interface Window {
  readonly bytes: Buffer
  readonly base: number
  readonly end: number
  append(piece: Uint8Array): void
  /** Nothing before this offset will be asked for again. */
  keepFrom(offset: number): void
  text(from: number, to: number): string
}

export function openWindow(): Window {
  let store = Buffer.alloc(0)
  let first = 0
  let bytes = store
  let base = 0
  let needed = 0

  return {
    get bytes() {
      return bytes
    },
    get base() {
      return base
    },
    get end() {
      return base + bytes.length
    },
    append(piece) {
      const dropped = Math.min(needed - base, bytes.length)
      const kept = bytes.length - dropped
      if (first + dropped + kept + piece.length > store.length) {
        const old = bytes.subarray(dropped)
        const wanted = 2 * (kept + piece.length)
        const isTight = 2 * kept + piece.length > store.length
        if (isTight || store.length > 8 * wanted) store = Buffer.allocUnsafeSlow(wanted)
        store.set(old, 0)
        first = 0
      } else {
        first += dropped
      }
      store.set(piece, first + kept)
      base += dropped
      bytes = store.subarray(first, first + kept + piece.length)
    },
    keepFrom(offset) {
      needed = Math.max(needed, offset)
    },
    text(from, to) {
      return bytes.toString('utf8', from - base, to - base)
    },
  }
}
