/**
 * A program's output, cut into utterances at its prompt, each passed on once: the position in the log
 * advances only after an utterance was processed, and the same bytes repeated have the same key (C25).
 */
import { closeSync } from 'node:fs'
import type { SessionPort } from '../../runtimes/runtime.ts'
import { MAX_SAYING, openPositionFile, releaseBefore, writeLogPosition } from './log-reader.ts'
import type { Patterns } from './patterns.ts'
import { createPlainText, type PlainText } from './plain-text.ts'

export interface ScreenOutput {
  push(bytes: Buffer): void
  /** The prompt is back: the output since the last one is one utterance. */
  cut(): void
  /** Repeats the utterances that were in progress between these offsets when the service ended. */
  repeat(from: number, to: number, bytes: Buffer): void
  /** Everything before it was freed on disk. */
  released(): number
  /** Little is to come: keep no file open for it. */
  rest(): void
  /** Passes on nothing more; later responses still count, while no other session has the folder. */
  close(): void
}

interface ScreenOutputOptions {
  folder: string
  path: string
  /** Identifies the launch; offsets alone would mean other bytes in another log. */
  run: string
  patterns: Patterns
  port: Pick<SessionPort, 'onText'>
  /** Everything before it was passed on and processed. */
  offset: number
  /** An earlier service had begun up to there: it is repeated, not pushed. */
  begun: number
  /** Everything before it was freed on disk. */
  released: number
  isBracketed(): boolean
  /** An utterance could not be processed. Nothing more is passed on, and the position stays. */
  onFailure(error: unknown): void
}

/** Passed on even without a prompt, so that a program which never returns to one takes no more memory. */
const LIMIT = 1 << 20
/** Free the log on disk in steps of this size. */
const RELEASE_EVERY = 32 << 20

/** Progress of one program's output. The functions below are shared by all. */
interface Saying
  extends Pick<
    ScreenOutputOptions,
    'folder' | 'path' | 'run' | 'patterns' | 'port' | 'isBracketed' | 'onFailure'
  > {
  /** Offset of the next output. */
  start: number
  end: number
  released: number
  /** No timer runs while the program is silent, as most agents are most of the time. */
  current: ScreenUtterance | undefined
  hasFailed: boolean
  isClosed: boolean
  isResting: boolean
  placeFile: number | undefined
  /** Everything before it was passed on and processed. */
  doneUpTo: number
  /**
   * Passed on, in order, from the first unprocessed one. A response may wait for the end of the turn: the
   * next utterance must not wait for it, but the position must not pass it either, or a crash would lose it.
   */
  readonly open: Cut[]
  readonly waiting: Cut[]
}

export function createSpeech(options: ScreenOutputOptions): ScreenOutput {
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
      const agentText = startUtterance()
      agentText.text.push(bytes)
      sayNext(saying, { from, to, words: wordsOf(agentText, patterns), isDone: false })
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
    .then(() => sayWaiting(saying))
    .catch((error: unknown) => fail(saying, error))
}

function fail(saying: Saying, error: unknown) {
  if (!saying.hasFailed) saying.onFailure(error)
  saying.hasFailed = true
}

function sayWaiting(saying: Saying) {
  const { open, waiting } = saying
  const hasWaiting = () => !saying.hasFailed && !saying.isClosed && waiting.length > 0
  while (hasWaiting() && open.length < MAX_SAYING) say(saying, waiting.shift()!)
}

function say(saying: Saying, one: Cut) {
  saying.open.push(one)
  if (one.words.trim() === '') return finish(saying, one)
  keepPlace(saying)
  saying.port
    .onText({ channel: 'pane', text: one.words, key: `${saying.run}:${one.from}` })
    .then(() => finish(saying, one))
    .then(() => sayWaiting(saying))
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

/**
 * Includes waiting ones: they may have been passed on before a restart, and would be cut elsewhere after the
 * next.
 */
function keepPlace(saying: Saying) {
  // Under its name there may be the next session's file by now; the open one is ours, even if removed.
  if (saying.isClosed && saying.placeFile === undefined) return
  const file = saying.placeFile ?? openPositionFile(saying.folder)
  const ends = [...saying.open, ...saying.waiting].slice(0, MAX_SAYING).map(({ to }) => to)
  const { doneUpTo: offset, released } = saying
  try {
    writeLogPosition(file, { offset, saying: ends, isBracketed: saying.isBracketed(), released })
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

/** An utterance by its position in the log. */
interface Cut {
  readonly from: number
  readonly to: number
  readonly words: string
  isDone: boolean
}

interface ScreenUtterance {
  text: PlainText
  lines: string[]
  length(): number
}

function startUtterance(): ScreenUtterance {
  const lines: string[] = []
  let length = 0
  const text = createPlainText((line) => {
    lines.push(line)
    length += line.length + 1
  })
  return { text, lines, length: () => length }
}

/** Without the prompt that ended it. */
function wordsOf({ text, lines }: ScreenUtterance, patterns: Patterns): string {
  const prompt = patterns.promptIn(text.line())
  return [...lines, prompt === undefined ? text.line() : text.line().slice(0, prompt)].join('\n')
}
