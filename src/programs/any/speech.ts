/**
 * What a program printed, cut into utterances at its prompt, each said once: the place in the log moves only when
 * what was said has been carried out, and the same bytes said again bear the same key (C25).
 */
import { closeSync } from 'node:fs'
import type { SessionPort } from '../../runtimes/runtime.ts'
import { releaseBefore } from './log-reader.ts'
import type { Patterns } from './patterns.ts'
import { MAX_SAYING, openPlace, writePlace } from './place.ts'
import { createPlainText, type PlainText } from './plain-text.ts'

export interface Speech {
  push(bytes: Buffer): void
  /** The prompt is back: what came since the last one is one utterance. */
  cut(): void
  /** Says again what was being said between these two when the service ended. */
  repeat(from: number, to: number, bytes: Buffer): void
  /** All before it was given back to the disk. */
  released(): number
  /** Little is to come: no file is kept open for it. */
  rest(): void
  /** Nothing more is said; what is answered from now on still counts, as long as nobody else has the folder. */
  close(): void
}

export interface SpeechOptions {
  folder: string
  path: string
  /** Of this launch; offsets alone would mean other bytes in another log. */
  run: string
  patterns: Patterns
  port: Pick<SessionPort, 'said'>
  /** All before it was said and done. */
  offset: number
  /** Up to there an earlier service had begun to say it: it is to be repeated, and is not pushed. */
  begun: number
  /** All before it was given back to the disk. */
  released: number
  isBracketed(): boolean
  /** What was said could not be carried out. Nothing more is said, and the place stays where it is. */
  onFailure(error: unknown): void
}

/** Said even without a prompt, so that a program which never returns to one takes up no more. */
const LIMIT = 1 << 20
/** That much of the log is behind us before it is given back to the disk. */
const RELEASE_EVERY = 32 << 20

/** How far what one program printed was said. What is done with it stands below, once for however many there are. */
interface Saying
  extends Pick<SpeechOptions, 'folder' | 'path' | 'run' | 'patterns' | 'port' | 'isBracketed' | 'onFailure'> {
  /** Of what comes next. */
  start: number
  end: number
  released: number
  /** None while the program is silent: most of a team is, most of the time. */
  current: Utterance | undefined
  hasFailed: boolean
  isClosed: boolean
  isResting: boolean
  placeFile: number | undefined
  /** All before it was said and done. */
  doneUpTo: number
  /**
   * Said, in order, from the first that is not done. An answer may wait for the end of the turn: the next utterance must
   * not wait for it, but the place must not pass it either, or a crash would lose it.
   */
  readonly open: Cut[]
  readonly waiting: Cut[]
}

export function createSpeech(options: SpeechOptions): Speech {
  const { folder, path, run, patterns, port, isBracketed, onFailure } = options
  const saying: Saying = {
    folder,
    path,
    run,
    patterns,
    port,
    isBracketed,
    onFailure,
    start: options.begun,
    end: options.begun,
    released: options.released,
    current: undefined,
    hasFailed: false,
    isClosed: false,
    isResting: false,
    placeFile: undefined,
    doneUpTo: options.offset,
    open: [],
    waiting: [],
  }
  return {
    push(bytes) {
      saying.current ??= startUtterance()
      saying.current.text.push(bytes)
      saying.end += bytes.length
      if (saying.current.length() > LIMIT) cut(saying)
    },
    cut: () => cut(saying),
    released: () => saying.released,
    rest: () => rest(saying),
    close() {
      saying.isClosed = true
      closePlaceWhenDone(saying)
    },
    repeat(from, to, bytes) {
      const utterance = startUtterance()
      utterance.text.push(bytes)
      sayNext(saying, { from, to, words: wordsOf(utterance, patterns), isDone: false })
    },
  }
}

function cut(saying: Saying) {
  const { current, patterns, start: from, end: to } = saying
  if (current === undefined || !current.text.isWhole()) return
  const words = wordsOf(current, patterns)
  saying.start = to
  saying.current = undefined
  sayNext(saying, { from, to, words, isDone: false })
}

function sayNext(saying: Saying, one: Cut) {
  saying.waiting.push(one)
  Promise.resolve()
    .then(() => goOn(saying))
    .catch((error: unknown) => fail(saying, error))
}

function fail(saying: Saying, error: unknown) {
  if (!saying.hasFailed) saying.onFailure(error)
  saying.hasFailed = true
}

function goOn(saying: Saying) {
  const { open, waiting } = saying
  const goesOn = () => !saying.hasFailed && !saying.isClosed && waiting.length > 0
  while (goesOn() && open.length < MAX_SAYING) say(saying, waiting.shift()!)
}

function say(saying: Saying, one: Cut) {
  saying.open.push(one)
  if (one.words.trim() === '') return finish(saying, one)
  keepPlace(saying)
  saying.port
    .said({ channel: 'pane', text: one.words, key: `${saying.run}:${one.from}` })
    .then(() => finish(saying, one))
    .then(() => goOn(saying))
    .catch((error: unknown) => fail(saying, error))
}

function finish(saying: Saying, one: Cut) {
  const { open, path } = saying
  one.isDone = true
  if (saying.hasFailed || open[0] !== one) return
  while (open[0]?.isDone) saying.doneUpTo = open.shift()!.to
  const isReleaseDue = !saying.isClosed && saying.doneUpTo - saying.released >= RELEASE_EVERY
  if (isReleaseDue) saying.released = saying.doneUpTo
  keepPlace(saying)
  if (isReleaseDue) releaseBefore(path, saying.doneUpTo)
  if (saying.isClosed) closePlaceWhenDone(saying)
}

/** Those that wait too: they may have been said before a restart, and would be cut elsewhere after the next. */
function keepPlace(saying: Saying) {
  // By its name it may be the file of the next session by now; the one that is open is ours, even when it is removed.
  if (saying.isClosed && saying.placeFile === undefined) return
  const file = saying.placeFile ?? openPlace(saying.folder)
  const ends = [...saying.open, ...saying.waiting].slice(0, MAX_SAYING).map(({ to }) => to)
  const { doneUpTo: offset, released } = saying
  try {
    writePlace(file, { offset, saying: ends, isBracketed: saying.isBracketed(), released })
  } finally {
    if (saying.isResting) closeSync(file)
    else saying.placeFile = file
  }
}

function rest(saying: Saying) {
  saying.isResting = true
  closePlace(saying)
}

function closePlaceWhenDone(saying: Saying) {
  if (saying.open.length === 0) closePlace(saying)
}

function closePlace(saying: Saying) {
  if (saying.placeFile !== undefined) closeSync(saying.placeFile)
  saying.placeFile = undefined
}

/** An utterance by its place in the log. */
interface Cut {
  readonly from: number
  readonly to: number
  readonly words: string
  isDone: boolean
}

interface Utterance {
  text: PlainText
  lines: string[]
  length(): number
}

function startUtterance(): Utterance {
  const lines: string[] = []
  let length = 0
  const text = createPlainText((line) => {
    lines.push(line)
    length += line.length + 1
  })
  return { text, lines, length: () => length }
}

/** Without the prompt that ended it. */
function wordsOf({ text, lines }: Utterance, patterns: Patterns): string {
  const prompt = patterns.promptIn(text.line())
  return [...lines, prompt === undefined ? text.line() : text.line().slice(0, prompt)].join('\n')
}
