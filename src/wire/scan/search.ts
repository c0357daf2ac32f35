/** Searches whose result is mostly close by: a native one is quick, but being called it costs as much as this many steps. */
const NEAR = 48

export function indexOfByte(bytes: Buffer, byte: number, from: number): number {
  const near = Math.min(bytes.length, from + NEAR)
  for (let at = from; at < near; at++) if (bytes[at] === byte) return at
  return near === bytes.length ? -1 : bytes.indexOf(byte, near)
}

export function includesByte(bytes: Buffer, byte: number, from: number, to: number): boolean {
  if (to - from > NEAR) return bytes.subarray(from, to).includes(byte)
  for (let at = from; at < to; at++) if (bytes[at] === byte) return true
  return false
}

export function indexOfBytes(bytes: Buffer, word: Buffer, from: number): number {
  const first = word[0]
  const near = Math.min(bytes.length, from + NEAR)
  for (let at = from; at < near; at++) if (bytes[at] === first && startsWith(bytes, word, at)) return at
  return near === bytes.length ? -1 : bytes.indexOf(word, near)
}

function startsWith(bytes: Buffer, word: Buffer, at: number): boolean {
  for (let i = 1; i < word.length; i++) if (bytes[at + i] !== word[i]) return false
  return true
}
