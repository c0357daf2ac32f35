/** Just enough of WebAssembly's binary format to write one small function by hand, instruction by instruction. */

export type Code = number | readonly Code[]

const I32 = 0x7f
const V128 = 0x7b
const VOID = 0x40
const PAGE = 65_536

/** Unsigned and signed LEB128, the format's variable-length integers. */
function unsigned(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsigned(value >>> 7)]
}

function signed(value: bigint): number[] {
  const low = Number(value & 0x7fn)
  return value >= -0x40n && value < 0x40n ? [low] : [low | 0x80, ...signed(value >> 7n)]
}

function flatten(code: Code): number[] {
  return typeof code === 'number' ? [code] : code.flatMap(flatten)
}

export const get = (local: number): Code => [0x20, unsigned(local)]
export const set = (local: number): Code => [0x21, unsigned(local)]
export const tee = (local: number): Code => [0x22, unsigned(local)]

export const block = (...body: Code[]): Code => [0x02, VOID, body, 0x0b]
export const loop = (...body: Code[]): Code => [0x03, VOID, body, 0x0b]
export const when = (...body: Code[]): Code => [0x04, VOID, body, 0x0b]
/** Leaves the block around, or one `depth` further out; of a loop, begins it anew. */
export const branch = (depth: number): Code => [0x0c, depth]
export const branchIf = (depth: number): Code => [0x0d, depth]

export const i32 = {
  const: (value: number): Code => [0x41, signed(BigInt(value))],
  load: (offset: number): Code => [0x28, 0, unsigned(offset)],
  load8: (offset: number): Code => [0x2d, 0, unsigned(offset)],
  store: (offset: number): Code => [0x36, 2, unsigned(offset)],
  isZero: 0x45,
  equal: 0x46,
  notEqual: 0x47,
  lessThan: 0x48,
  greaterThan: 0x4a,
  lessOrEqual: 0x4c,
  greaterOrEqual: 0x4e,
  trailingZeros: 0x68,
  ones: 0x69,
  add: 0x6a,
  subtract: 0x6b,
  and: 0x71,
  or: 0x72,
  shiftLeft: 0x74,
} as const

export const i64 = {
  const: (value: bigint): Code => [0x42, signed(BigInt.asIntN(64, value))],
  load: (offset: number): Code => [0x29, 0, unsigned(offset)],
  equal: 0x51,
  or: 0x84,
} as const

export const v128 = {
  load: (offset: number): Code => [0xfd, 0, 0, unsigned(offset)],
  splat8: [0xfd, 15],
  equal8: [0xfd, 35],
  and: [0xfd, 78],
  or: [0xfd, 80],
  anyTrue: [0xfd, 83],
  bits8: [0xfd, 100],
} as const

/** A module with one function of `parameters` integers that returns one, and its memory. */
export function assemble(
  name: string,
  parameters: number,
  locals: { i32: number; v128: number },
  memoryBytes: number,
  body: Code,
): Uint8Array<ArrayBuffer> {
  const text = (word: string) => [word.length, ...Buffer.from(word)]
  const section = (id: number, content: Code) => {
    const bytes = flatten(content)
    return [id, unsigned(bytes.length), bytes]
  }
  const code = flatten([2, unsigned(locals.i32), I32, unsigned(locals.v128), V128, body, 0x0b])
  return Uint8Array.from(
    flatten([
      [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
      section(1, [1, 0x60, parameters, Array<number>(parameters).fill(I32), 1, I32]),
      section(3, [1, 0]),
      section(5, [1, 0, unsigned(Math.ceil(memoryBytes / PAGE))]),
      section(7, [2, text('memory'), 2, 0, text(name), 0, 0]),
      section(10, [1, unsigned(code.length), code]),
    ]),
  )
}
