/**
 * The part of the stream that is still needed. Offsets are those of the whole stream; `bytes[0]` is the byte at `base`.
 * Appending takes time in proportion to the appended text, however much is kept: the store doubles when it runs out.
 */
export interface TextWindow {
  readonly bytes: Buffer
  readonly base: number
  readonly end: number
  append(piece: Uint8Array): void
  /** Allows the bytes before this offset to be dropped. */
  keepFrom(offset: number): void
  text(from: number, to: number): string
}

export function openTextWindow(): TextWindow {
  let store = Buffer.alloc(0)
  /** Offset of `bytes` in the store. */
  let first = 0
  let needed = 0

  const window = {
    bytes: store,
    base: 0,
    end: 0,

    append(piece: Uint8Array) {
      const { bytes } = window
      const dropped = Math.min(needed - window.base, bytes.length)
      const kept = bytes.length - dropped
      if (first + dropped + kept + piece.length > store.length) {
        const wanted = 2 * (kept + piece.length)
        const isTight = 2 * kept + piece.length > store.length
        if (isTight || store.length > 8 * wanted) store = Buffer.allocUnsafeSlow(wanted)
        store.set(bytes.subarray(dropped), 0)
        first = 0
      } else {
        first += dropped
      }
      store.set(piece, first + kept)
      window.bytes = store.subarray(first, first + kept + piece.length)
      window.base += dropped
      window.end += piece.length
    },

    keepFrom(offset: number) {
      if (offset > needed) needed = offset
    },

    text(from: number, to: number) {
      return window.bytes.toString('utf8', from - window.base, to - window.base)
    },
  }
  return window
}
