/** The search for landmarks in WebAssembly. What it finds is defined by `findLandmarksPlainly`; a test compares them. */
import { BLOCK, type FindLandmarks, LOOK_AHEAD, MOST_LANDMARKS } from '../landmark.ts'
import { assemble, block, branch, branchIf, get, i32, loop, set, tee, v128, when } from './assembler.ts'

/** Where things lie in the module's memory: the number of lines, the text, then the places found. */
const LINES_AT = 0
const TEXT_AT = 64

// Parameters: how many bytes to search, how many there are to see, where to write the places.
const SEARCHED = 0
const VISIBLE = 1
const OUT = 2
// Local variables.
const I = 3
const NEWLINES = 4
const CANDIDATES = 5
const AT = 6
const NEXT_TWO = 7
const LINES = 8
const PROBE = 9
const BYTE = 10
const TEXT = 11
const RARE = 12
const SPLATS = { '\n': 13, '<': 14, '`': 15, '~': 16, '{': 17, '[': 18 }

type Special = keyof typeof SPLATS

const byte = (character: string) => i32.const(character.charCodeAt(0))
const pair = (two: string) => i32.const(two.charCodeAt(0) | (two.charCodeAt(1) << 8))
const lanesThatAre = (special: Special) => [get(TEXT), get(SPLATS[special]), v128.equal8]
const backticksFrom = (distance: number) => [
  get(I),
  v128.load(TEXT_AT + distance),
  get(SPLATS['`']),
  v128.equal8,
]
const increase = (local: number, by: number) => [get(local), i32.const(by), i32.add, set(local)]

/** In the last, shorter step of the search: forget the lanes behind its end. */
const cut = (lanes: number) =>
  when(
    [get(lanes), i32.const(1), get(SEARCHED), get(I), i32.subtract, i32.shiftLeft],
    [i32.const(1), i32.subtract, i32.and, set(lanes)],
  )
const isLastStep = [get(SEARCHED), get(I), i32.subtract, i32.const(16), i32.lessThan]

/** Leaves the block around it if the candidate is a landmark, and the one around that if not. */
const judge = [
  [get(AT), i32.load16(TEXT_AT + 1), set(NEXT_TWO)],
  [get(AT), i32.load8(TEXT_AT), tee(BYTE), byte('<'), i32.equal],
  when(
    [get(NEXT_TWO), i32.const(0x2020), i32.or, tee(NEXT_TWO), pair('or'), i32.equal, branchIf(1)],
    [get(NEXT_TWO), pair('/o'), i32.equal, branchIf(1)],
    [get(NEXT_TWO), pair('!{'), i32.equal, branchIf(1)],
    branch(2),
  ),
  [get(BYTE), byte('{'), i32.equal],
  when(
    [get(AT), set(PROBE)],
    loop(
      increase(PROBE, 1),
      [get(PROBE), get(VISIBLE), i32.const(1), i32.subtract, i32.greaterOrEqual, branchIf(2)],
      [get(PROBE), i32.load8(TEXT_AT), tee(BYTE), i32.const(32), i32.lessOrEqual, branchIf(0)],
    ),
    [get(BYTE), i32.const(0xe2), i32.equal],
    when([get(PROBE), i32.load8(TEXT_AT + 1), i32.const(0x80), i32.equal, branchIf(2)], branch(3)),
    [get(BYTE), byte('"'), i32.notEqual, get(BYTE), byte("'"), i32.notEqual, i32.and, branchIf(2)],
    [get(PROBE), i32.load8(TEXT_AT + 1), i32.const(0x20), i32.or, byte('o'), i32.equal, branchIf(1)],
    branch(2),
  ),
  [get(BYTE), byte('['), i32.equal],
  when([get(NEXT_TWO), pair('OR'), i32.equal, branchIf(1)], branch(2)),
  // A backtick or a tilde: three of them, and not in the middle of a run.
  [get(NEXT_TWO), get(BYTE), i32.const(0x0101), i32.multiply, i32.notEqual, branchIf(1)],
  [get(AT), i32.load8(TEXT_AT - 1), get(BYTE), i32.equal, branchIf(1)],
]

const body = [
  Object.entries(SPLATS).map(([special, local]) => [byte(special), v128.splat8, set(local)]),
  loop(
    [get(I), v128.load(TEXT_AT), set(TEXT)],
    [lanesThatAre('\n'), v128.bits8, set(NEWLINES)],
    [isLastStep, cut(NEWLINES)],
    [lanesThatAre('<'), lanesThatAre('~'), v128.or, lanesThatAre('{'), v128.or, lanesThatAre('['), v128.or],
    [tee(RARE), lanesThatAre('`'), v128.or, v128.anyTrue],
    when(
      // Backticks are frequent, three in a row are not.
      [get(RARE), backticksFrom(0), backticksFrom(1), v128.and, backticksFrom(2), v128.and, v128.or],
      [v128.bits8, set(CANDIDATES)],
      [isLastStep, cut(CANDIDATES)],
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
            increase(OUT, 8),
          ),
          [get(CANDIDATES), get(CANDIDATES), i32.const(1), i32.subtract, i32.and, set(CANDIDATES)],
          branch(0),
        ),
      ),
    ),
    [get(LINES), get(NEWLINES), i32.ones, i32.add, set(LINES)],
    [get(I), i32.const(16), i32.add, tee(I), get(SEARCHED), i32.lessThan, branchIf(0)],
  ),
  [i32.const(LINES_AT), get(LINES), i32.store(0)],
  get(OUT),
]

/** Undefined where WebAssembly, or its vector instructions, are missing or forbidden. */
export function openKernel(): FindLandmarks | undefined {
  const placesAt = TEXT_AT + BLOCK + 64
  const module = assemble('find', 3, { i32: 8, v128: 8 }, placesAt + 8 * MOST_LANDMARKS, body)
  if (typeof WebAssembly === 'undefined' || !WebAssembly.validate(module)) return undefined
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(module))
  const find = exports.find as (searched: number, visible: number, out: number) => number
  const { buffer } = exports.memory as WebAssembly.Memory
  const memory = new Uint8Array(buffer)
  const lines = new Uint32Array(buffer, LINES_AT, 1)
  const places = new Uint32Array(buffer, placesAt)
  const found = { count: 0, places, lines: 0 }

  return (bytes, from, to) => {
    const end = Math.min(bytes.length, to + LOOK_AHEAD)
    const visible = end - from
    memory[TEXT_AT - 1] = from > 0 ? bytes[from - 1]! : 0
    memory.set(bytes.subarray(from, end), TEXT_AT)
    memory.fill(0, TEXT_AT + visible, TEXT_AT + visible + LOOK_AHEAD)
    found.count = (find(to - from, visible, placesAt) - placesAt) / 8
    found.lines = lines[0]!
    return found
  }
}
