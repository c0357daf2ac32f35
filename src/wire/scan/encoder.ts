/** Turns chunks into UTF-8 bytes. A string may end inside a character, whose other half comes with the next one. */
export interface Encoder {
  encode(chunk: Uint8Array | string): Uint8Array
  /** What is left of a character that was never completed. */
  rest(): Uint8Array
}

export function openEncoder(): Encoder {
  /** The first half of a surrogate pair. */
  let half = ''

  function take(): string {
    const taken = half
    half = ''
    return taken
  }

  return {
    encode(chunk) {
      if (typeof chunk !== 'string') return half === '' ? chunk : Buffer.concat([Buffer.from(take()), chunk])
      const text = take() + chunk
      const last = text.charCodeAt(text.length - 1)
      const isHalf = last >= 0xd800 && last <= 0xdbff
      if (isHalf) half = text.slice(-1)
      return Buffer.from(isHalf ? text.slice(0, -1) : text)
    },
    rest() {
      return Buffer.from(take())
    },
  }
}
