/** The search for landmarks in WebAssembly. What it finds is defined by `findLandmarksPlainly`; a test compares them. */
import {
  BLOCK,
  CDATA,
  CDATA_MIDDLE,
  type FindLandmarks,
  KEY_WORD,
  LOOK_AHEAD,
  MARKERS,
  MOST_LANDMARKS,
  TAG_WORD,
  TYPE_KEY,
  WORD_MIDDLE,
} from '../landmark.ts'
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
} from './assembler.ts'

/** Where things lie in the module's memory: the number of lines, what precedes the text, the text, the places found. */
const LINES_AT = 0
const TEXT_AT = 512
const PLACES_AT = TEXT_AT + BLOCK + 64

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
const START = 11
const TEXT = 12
const NEXT = 13
const C_NEXT = 14
const LINE_ENDS = 15
const FOUND = 16
/** Sixteen times the same byte. */
const SPLATS = { '\n': 17, '-': 18, _: 19, '[': 20, '`': 21, '~': 22, c: 23, O: 24, ' ': 25, '"': 26, t: 27 }

type Character = keyof typeof SPLATS

const byte = (character: string): Code => i32.const(character.charCodeAt(0))
const isByte = (local: number, character: string): Code => [get(local), byte(character), i32.equal]
const move = (local: number, by: number): Code => [get(local), i32.const(by), i32.add, set(local)]
const lanesOf = (vector: Code, character: Character): Code => [vector, get(SPLATS[character]), v128.equal8]
const both = (one: Code, other: Code): Code => [one, other, v128.and]
const either = (one: Code, other: Code): Code => [one, other, v128.or]
const textAt = (distance: number): Code => [get(I), v128.load(TEXT_AT + distance)]
const separators = either(lanesOf(get(TEXT), '-'), lanesOf(get(TEXT), '_'))
const marks = either(lanesOf(get(TEXT), '`'), lanesOf(get(TEXT), '~'))
const brackets = lanesOf(get(TEXT), '[')
const quotes = lanesOf(get(TEXT), '"')
/** Before a letter c, for brackets an O, for quotation marks a t; with the same mark behind it. That leaves very few. */
const promising: Code = [
  [lanesOf(either(get(NEXT), get(SPLATS[' '])), 'c'), set(C_NEXT)],
  both(separators, get(C_NEXT)),
  [both(brackets, either(get(C_NEXT), lanesOf(get(NEXT), 'O'))), v128.or],
  [both(marks, [get(TEXT), get(NEXT), v128.equal8]), v128.or],
  [both(quotes, lanesOf(get(NEXT), 't')), v128.or],
]

/** In the last, shorter step of the search: forget the lanes behind its end. */
const cut = (lanes: number): Code => [
  [get(SEARCHED), get(I), i32.subtract, i32.const(16), i32.lessThan],
  when(
    [get(lanes), i32.const(1), get(SEARCHED), get(I), i32.subtract, i32.shiftLeft],
    [i32.const(1), i32.subtract, i32.and, set(lanes)],
  ),
]

/** Whether the bytes, some way from the place in question, are this word in any case: 8 at a time, then 4, then 1. */
const reads = (distance: number, word: Buffer): Code[] => {
  const anyCase = Buffer.from(word.map((letter) => (letter >= 0x61 && letter <= 0x7a ? 0x20 : 0)))
  const tests: Code[] = []
  for (let at = 0; at < word.length; ) {
    const offset = TEXT_AT + distance + at
    const left = word.length - at
    if (left >= 8) {
      tests.push([get(AT), i64.load(offset), i64.const(anyCase.readBigUInt64LE(at)), i64.or])
      tests.push([i64.const(word.readBigUInt64LE(at)), i64.equal])
    } else if (left >= 4) {
      tests.push([get(AT), i32.load(offset), i32.const(anyCase.readInt32LE(at)), i32.or])
      tests.push([i32.const(word.readInt32LE(at)), i32.equal])
    } else {
      tests.push([get(AT), i32.load8(offset), i32.const(anyCase[at]!), i32.or])
      tests.push([i32.const(word[at]!), i32.equal])
    }
    if (at > 0) tests.push(i32.and)
    at += left >= 8 ? 8 : left >= 4 ? 4 : 1
  }
  return tests
}
const isCutOff: Code = [get(AT), i32.const(LOOK_AHEAD), i32.add, get(VISIBLE), i32.greaterThan]

// Each of these leaves `depth` blocks if the candidate tells a landmark, and one more if it does not.
const judgeWord = (depth: number, word: Buffer): Code => [
  [get(AT), i32.const(WORD_MIDDLE), i32.subtract, set(START)],
  [isCutOff, branchIf(depth)],
  [reads(-WORD_MIDDLE, word), branchIf(depth)],
  branch(depth + 1),
]
const judgeBracket = (depth: number): Code => [
  [get(AT), i32.load8(TEXT_AT - 1), byte('!'), i32.equal],
  when(
    [get(AT), i32.const(CDATA_MIDDLE), i32.subtract, set(START)],
    [isCutOff, branchIf(depth + 1)],
    [reads(-CDATA_MIDDLE, CDATA), branchIf(depth + 1)],
    branch(depth + 2),
  ),
  [isCutOff, branchIf(depth)],
  MARKERS.map((word) => [reads(1, word), branchIf(depth)]),
  branch(depth + 1),
]
const judgeQuote = (depth: number): Code => [
  [isCutOff, branchIf(depth)],
  [get(AT), i32.load8(TEXT_AT + 1), byte('t'), i32.equal, reads(0, TYPE_KEY), i32.and, branchIf(depth)],
  branch(depth + 1),
]
/** The next two bytes are the same mark, as far as they can be seen, and only a prefix precedes it on its line. */
const judgeFence = (depth: number): Code => [
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

const judge: Code = [
  [get(AT), tee(START), i32.load8(TEXT_AT), set(MARK)],
  [isByte(MARK, '-'), when(judgeWord(1, TAG_WORD))],
  [isByte(MARK, '_'), when(judgeWord(1, KEY_WORD))],
  [isByte(MARK, '['), when(judgeBracket(1))],
  [isByte(MARK, '"'), when(judgeQuote(1))],
  judgeFence(0),
]

/** Writes down the landmarks that the candidates tell. */
const judgeAll: Code = block(
  loop(
    [get(CANDIDATES), i32.isZero, branchIf(1)],
    [get(I), get(CANDIDATES), i32.trailingZeros, i32.add, set(AT)],
    block(
      block(judge),
      [get(OUT), get(START), i32.store(0)],
      // Line ends before the candidate's lane, and in all the steps before.
      [get(OUT), i32.const(1), get(CANDIDATES), i32.trailingZeros, i32.shiftLeft],
      [i32.const(1), i32.subtract, get(NEWLINES), i32.and, i32.ones, get(LINES), i32.add, i32.store(4)],
      move(OUT, 8),
    ),
    [get(CANDIDATES), get(CANDIDATES), i32.const(1), i32.subtract, i32.and, set(CANDIDATES)],
    branch(0),
  ),
)
const countLines: Code = [get(LINES), get(NEWLINES), i32.ones, i32.add, set(LINES)]
/** A bit for each lane of two vectors. */
const bits = (first: Code, second: Code): Code => [
  [first, v128.bits8, second, v128.bits8, i32.const(16), i32.shiftLeft, i32.or],
]
const load = (distance: number): Code => [textAt(distance), set(TEXT), textAt(distance + 1), set(NEXT)]

const body: Code = [
  Object.entries(SPLATS).map(([character, local]) => [byte(character), v128.splat8, set(local)]),
  block(
    loop(
      [get(I), i32.const(32), i32.add, get(SEARCHED), i32.greaterThan, branchIf(1)],
      [get(I), i32.const(32 + LOOK_AHEAD), i32.add, get(VISIBLE), i32.greaterThan, branchIf(1)],
      [load(0), lanesOf(get(TEXT), '\n'), set(LINE_ENDS), promising, set(FOUND)],
      [load(16), bits(get(LINE_ENDS), lanesOf(get(TEXT), '\n')), set(NEWLINES)],
      [promising, tee(TEXT), get(FOUND), v128.or, v128.anyTrue],
      when([bits(get(FOUND), get(TEXT)), set(CANDIDATES)], judgeAll),
      countLines,
      move(I, 32),
      branch(0),
    ),
  ),
  // The end may cut a landmark off, so nothing is ruled out there.
  block(
    loop(
      [get(I), get(SEARCHED), i32.greaterOrEqual, branchIf(1)],
      [load(0), lanesOf(get(TEXT), '\n'), v128.bits8, set(NEWLINES), cut(NEWLINES)],
      [
        either(either(separators, marks), either(brackets, quotes)),
        v128.bits8,
        set(CANDIDATES),
        cut(CANDIDATES),
      ],
      judgeAll,
      countLines,
      move(I, 16),
      branch(0),
    ),
  ),
  [i32.const(LINES_AT), get(LINES), i32.store(0)],
  get(OUT),
]

/** Undefined where WebAssembly, or its vector instructions, are missing or forbidden. */
export function openKernel(): FindLandmarks | undefined {
  const module = assemble('find', 3, { i32: 9, v128: 16 }, PLACES_AT + 8 * MOST_LANDMARKS, body)
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
