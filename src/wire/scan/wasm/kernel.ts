/** The search for landmarks in WebAssembly. What it finds is defined by `findLandmarksPlainly`; a test compares them. */
import { BLOCK, type FindLandmarks, LOOK_AHEAD, MARKERS, MOST_LANDMARKS, TAGS } from '../landmark.ts'
import { PREFIX_LIMIT } from '../lines.ts'
import {
  assemble,
  block,
  branch,
  branchIf,
  type Code,
  get,
  i32,
  i64,
  loop,
  set,
  tee,
  v128,
  when,
  whenElse,
} from './assembler.ts'

/** Where things lie in the module's memory: the number of lines, what precedes the text, the text, the places found. */
const LINES_AT = 0
const TEXT_AT = 512
const PLACES_AT = TEXT_AT + BLOCK + 64

/** How many bytes are looked at in one step: two vectors. */
const STEP = 32

// Parameters: how many bytes to search, how many there are to see, where to write the places.
const SEARCHED = 0
const VISIBLE = 1
const OUT = 2
// Local variables.
const I = 3
const NEWLINES = 4
const CANDIDATES = 5
const AT = 6
const LINES = 7
const PROBE = 8
const MARK = 9
const BYTE = 10
const FIRST = 11
const SECOND = 12
const THIS = 13
const NEXT = 14
/** Sixteen times the same byte, for those that are needed in every step. */
const SPLATS: Record<string, number> = { '\n': 15, '<': 16, '`': 17, '{': 18, '[': 19, '~': 20 }
const SPECIALS = ['<', '`', '{', '[', '~']

const code = (character: string) => character.charCodeAt(0)
const byte = (character: string) => i32.const(code(character))
const isByte = (local: number, character: string) => [get(local), byte(character), i32.equal]
const move = (local: number, by: number) => [get(local), i32.const(by), i32.add, set(local)]

const splat = (character: string): Code => [byte(character), v128.splat8]
const constant = (character: string): Code =>
  SPLATS[character] === undefined ? splat(character) : get(SPLATS[character])

/** The lanes of a vector that hold this byte. */
const lanesOf = (vector: Code, character: string): Code => [vector, constant(character), v128.equal8]
const either = (first: Code, ...others: Code[]): Code => [first, others.map((lanes) => [lanes, v128.or])]
const both = (one: Code, other: Code): Code => [one, other, v128.and]

/** Lanes in which something may begin. */
const specials = (vector: Code): Code => {
  const [first, ...others] = SPECIALS.map((special) => lanesOf(vector, special))
  return either(first!, ...others)
}

/** Those of them that the next bytes do not rule out. Most are ruled out. */
const promising = (distance: number): Code => {
  const third: Code = [get(I), v128.load(TEXT_AT + distance + 2)]
  const nextInLowerCase: Code = [get(NEXT), splat(' '), v128.or]
  const mayFollowBrace = either([get(NEXT), splat("'"), v128.lessOrEqual8], lanesOf(get(NEXT), '\xe2'))
  const mayFollowTag = either(lanesOf(nextInLowerCase, 'o'), lanesOf(get(NEXT), '/'), lanesOf(get(NEXT), '!'))
  return [
    [get(I), v128.load(TEXT_AT + distance), set(THIS), get(I), v128.load(TEXT_AT + distance + 1), set(NEXT)],
    either(
      both(lanesOf(get(THIS), '`'), both(lanesOf(get(NEXT), '`'), lanesOf(third, '`'))),
      both(lanesOf(get(THIS), '~'), lanesOf(get(NEXT), '~')),
      both(lanesOf(get(THIS), '<'), mayFollowTag),
      both(lanesOf(get(THIS), '['), lanesOf(nextInLowerCase, 'o')),
      both(lanesOf(get(THIS), '{'), mayFollowBrace),
    ),
  ]
}

/** A bit for each lane of two vectors. */
const bits = (first: Code, second: Code): Code => [
  [first, v128.bits8, second, v128.bits8, i32.const(16), i32.shiftLeft, i32.or],
]

/** In the last, shorter step of the search: forget the lanes behind its end. */
const cut = (lanes: number) => [
  [get(SEARCHED), get(I), i32.subtract, i32.const(STEP), i32.lessThan],
  when(
    [get(lanes), i32.const(1), get(SEARCHED), get(I), i32.subtract, i32.shiftLeft],
    [i32.const(1), i32.subtract, i32.and, set(lanes)],
  ),
]

/** Whether the bytes, some way behind the place that `local` holds, are this word in any case: 8, then 4, then 1 each. */
const reads = (local: number, distance: number, word: string): Code[] => {
  const letters = Buffer.from(word)
  const anyCase = Buffer.from(letters.map((letter) => (letter >= 0x61 && letter <= 0x7a ? 0x20 : 0)))
  const tests: Code[] = []
  for (let at = 0; at < letters.length; ) {
    const offset = TEXT_AT + distance + at
    const left = letters.length - at
    if (left >= 8) {
      tests.push([get(local), i64.load(offset), i64.const(anyCase.readBigUInt64LE(at)), i64.or])
      tests.push([i64.const(letters.readBigUInt64LE(at)), i64.equal])
    } else if (left >= 4) {
      tests.push([get(local), i32.load(offset), i32.const(anyCase.readInt32LE(at)), i32.or])
      tests.push([i32.const(letters.readInt32LE(at)), i32.equal])
    } else {
      tests.push([get(local), i32.load8(offset), i32.const(anyCase[at]!), i32.or])
      tests.push([i32.const(letters[at]!), i32.equal])
    }
    if (at > 0) tests.push(i32.and)
    at += left >= 8 ? 8 : left >= 4 ? 4 : 1
  }
  return tests
}
const isCutOff = (local: number) => [
  get(local),
  i32.const(LOOK_AHEAD),
  i32.add,
  get(VISIBLE),
  i32.greaterThan,
]

// Each of these leaves one block more than `depth` if the candidate is none, and `depth` blocks if it is a landmark.
const judgeBracket = (depth: number) => [
  [isCutOff(AT), branchIf(depth)],
  MARKERS.map((word) => [reads(AT, 1, word), branchIf(depth)]),
  branch(depth + 1),
]
const judgeTag = (depth: number) => [
  [isCutOff(AT), branchIf(depth)],
  TAGS.map((word) => [reads(AT, 1, word), branchIf(depth)]),
  branch(depth + 1),
]
const judgeBrace = (depth: number) => [
  [get(AT), set(PROBE)],
  loop(
    move(PROBE, 1),
    [get(PROBE), get(VISIBLE), i32.greaterOrEqual, branchIf(depth + 1)],
    [get(PROBE), i32.load8(TEXT_AT), tee(BYTE), i32.const(0x20), i32.lessOrEqual, branchIf(0)],
  ),
  [isCutOff(PROBE), branchIf(depth)],
  [isByte(BYTE, '"'), isByte(BYTE, "'"), i32.or],
  when([reads(PROBE, 1, 'orc_comm'), branchIf(depth + 1)], branch(depth + 2)),
  [get(BYTE), i32.const(0xe2), i32.equal, reads(PROBE, 3, 'orc_comm'), i32.and, branchIf(depth)],
  branch(depth + 1),
]
/** The next two bytes are the same mark, as far as they can be seen, and only a prefix precedes it on its line. */
const judgeFence = (depth: number) => [
  [1, 2].map((distance) => [
    [get(AT), i32.load8(TEXT_AT + distance), get(MARK), i32.notEqual],
    [get(AT), i32.const(distance), i32.add, get(VISIBLE), i32.lessThan, i32.and, branchIf(depth + 1)],
  ]),
  // Addresses must not be negative, so here the probe is one.
  [get(AT), i32.const(TEXT_AT), i32.add, set(PROBE)],
  loop(
    move(PROBE, -1),
    [get(PROBE), i32.load8(0), tee(BYTE), byte('\n'), i32.equal, branchIf(depth + 1)],
    [
      get(AT),
      get(PROBE),
      i32.subtract,
      i32.const(PREFIX_LIMIT - TEXT_AT),
      i32.greaterThan,
      branchIf(depth + 2),
    ],
    [get(BYTE), byte(')'), i32.greaterOrEqual, get(BYTE), byte('9'), i32.lessOrEqual, i32.and],
    [isByte(BYTE, ' '), i32.or, isByte(BYTE, '\t'), i32.or, isByte(BYTE, '>'), i32.or, branchIf(0)],
  ),
  branch(depth + 1),
]

const judge = [
  [get(AT), i32.load8(TEXT_AT), set(MARK)],
  [isByte(MARK, '<'), when(judgeTag(1))],
  [isByte(MARK, '{'), when(judgeBrace(1))],
  [isByte(MARK, '['), when(judgeBracket(1))],
  judgeFence(0),
]

const body = [
  Object.entries(SPLATS).map(([character, local]) => [splat(character), set(local)]),
  loop(
    [get(I), v128.load(TEXT_AT), set(FIRST), get(I), v128.load(TEXT_AT + 16), set(SECOND)],
    [bits(lanesOf(get(FIRST), '\n'), lanesOf(get(SECOND), '\n')), set(NEWLINES)],
    cut(NEWLINES),
    [either(specials(get(FIRST)), specials(get(SECOND))), v128.anyTrue],
    when(
      // Where the end may cut a landmark off, nothing is ruled out.
      [get(I), i32.const(STEP + LOOK_AHEAD), i32.add, get(VISIBLE), i32.greaterThan],
      whenElse(
        [bits(specials(get(FIRST)), specials(get(SECOND))), set(CANDIDATES), cut(CANDIDATES)],
        [bits(promising(0), promising(16)), set(CANDIDATES)],
      ),
      block(
        loop(
          [get(CANDIDATES), i32.isZero, branchIf(1)],
          [get(I), get(CANDIDATES), i32.trailingZeros, i32.add, set(AT)],
          block(
            block(judge),
            [get(OUT), get(AT), i32.store(0)],
            // Line ends before the candidate's lane, and in all the steps before.
            [get(OUT), i32.const(1), get(CANDIDATES), i32.trailingZeros, i32.shiftLeft],
            [i32.const(1), i32.subtract, get(NEWLINES), i32.and, i32.ones, get(LINES), i32.add, i32.store(4)],
            move(OUT, 8),
          ),
          [get(CANDIDATES), get(CANDIDATES), i32.const(1), i32.subtract, i32.and, set(CANDIDATES)],
          branch(0),
        ),
      ),
    ),
    [get(LINES), get(NEWLINES), i32.ones, i32.add, set(LINES)],
    [get(I), i32.const(STEP), i32.add, tee(I), get(SEARCHED), i32.lessThan, branchIf(0)],
  ),
  [i32.const(LINES_AT), get(LINES), i32.store(0)],
  get(OUT),
]

/** Undefined where WebAssembly, or its vector instructions, are missing or forbidden. */
export function openKernel(): FindLandmarks | undefined {
  const module = assemble('find', 3, { i32: 8, v128: 10 }, PLACES_AT + 8 * MOST_LANDMARKS, body)
  if (typeof WebAssembly === 'undefined' || !WebAssembly.validate(module)) return undefined
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(module))
  const find = exports.find as (searched: number, visible: number, out: number) => number
  const { buffer } = exports.memory as WebAssembly.Memory
  const memory = new Uint8Array(buffer)
  const lines = new Uint32Array(buffer, LINES_AT, 1)
  const found = { count: 0, places: new Int32Array(buffer, PLACES_AT), lines: 0 }

  return (bytes, from, to) => {
    const start = Math.max(0, from - PREFIX_LIMIT - 1)
    const end = Math.min(bytes.length, to + LOOK_AHEAD)
    const visible = end - from
    // The beginning of the text is the beginning of a line.
    memory[TEXT_AT - (from - start) - 1] = 0x0a
    memory.set(bytes.subarray(start, end), TEXT_AT - (from - start))
    found.count = (find(to - from, visible, PLACES_AT) - PLACES_AT) / 8
    found.lines = lines[0]!
    return found
  }
}
