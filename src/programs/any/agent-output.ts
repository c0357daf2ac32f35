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
interface OutputProgress
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
  positionFile: number | undefined
  /** Everything before it was passed on and processed. */
  doneUpTo: number
  /**
   * Passed on, in order, from the first unprocessed one. A response may wait for the end of the turn: the
   * next utterance must not wait for it, but the position must not pass it either, or a crash would lose it.
   */
  readonly open: Cut[]
  readonly waiting: Cut[]
}

export function createScreenOutput(options: ScreenOutputOptions): ScreenOutput {
  const { folder, path, run, patterns, port, isBracketed, onFailure } = options
  const progress: OutputProgress = {
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
    positionFile: undefined,
    doneUpTo: options.offset,
    open: [],
    waiting: [],
  }
  return {
    push(bytes) {
      progress.current ??= startUtterance()
      progress.current.text.push(bytes)
      progress.end += bytes.length
      if (progress.current.length() > LIMIT) cut(progress)
    },
    cut: () => cut(progress),
    released: () => progress.released,
    rest: () => rest(progress),
    close() {
      progress.isClosed = true
      closePositionWhenDone(progress)
    },
    repeat(from, to, bytes) {
      const agentText = startUtterance()
      agentText.text.push(bytes)
      sayNext(progress, { from, to, words: wordsOf(agentText, patterns), isDone: false })
    },
  }
}

function cut(progress: OutputProgress) {
  const { current, patterns, start: from, end: to } = progress
  if (current === undefined || !current.text.isWhole()) return
  const words = wordsOf(current, patterns)
  progress.start = to
  progress.current = undefined
  sayNext(progress, { from, to, words, isDone: false })
}

function sayNext(progress: OutputProgress, one: Cut) {
  progress.waiting.push(one)
  Promise.resolve()
    .then(() => sayWaiting(progress))
    .catch((error: unknown) => fail(progress, error))
}

function fail(progress: OutputProgress, error: unknown) {
  if (!progress.hasFailed) progress.onFailure(error)
  progress.hasFailed = true
}

function sayWaiting(progress: OutputProgress) {
  const { open, waiting } = progress
  const hasWaiting = () => !progress.hasFailed && !progress.isClosed && waiting.length > 0
  while (hasWaiting() && open.length < MAX_SAYING) say(progress, waiting.shift()!)
}

function say(progress: OutputProgress, one: Cut) {
  progress.open.push(one)
  if (one.words.trim() === '') return finish(progress, one)
  savePosition(progress)
  progress.port
    .onText({ channel: 'pane', text: one.words, key: `${progress.run}:${one.from}` })
    .then(() => finish(progress, one))
    .then(() => sayWaiting(progress))
    .catch((error: unknown) => fail(progress, error))
}

function finish(progress: OutputProgress, one: Cut) {
  const { open, path } = progress
  one.isDone = true
  if (progress.hasFailed || open[0] !== one) return
  while (open[0]?.isDone) progress.doneUpTo = open.shift()!.to
  const isReleaseDue = !progress.isClosed && progress.doneUpTo - progress.released >= RELEASE_EVERY
  if (isReleaseDue) progress.released = progress.doneUpTo
  savePosition(progress)
  if (isReleaseDue) releaseBefore(path, progress.doneUpTo)
  if (progress.isClosed) closePositionWhenDone(progress)
}

/**
 * Includes waiting ones: they may have been passed on before a restart, and would be cut elsewhere after the
 * next.
 */
function savePosition(progress: OutputProgress) {
  // Under its name there may be the next session's file by now; the open one is ours, even if removed.
  if (progress.isClosed && progress.positionFile === undefined) return
  const file = progress.positionFile ?? openPositionFile(progress.folder)
  const ends = [...progress.open, ...progress.waiting].slice(0, MAX_SAYING).map(({ to }) => to)
  const { doneUpTo: offset, released } = progress
  try {
    writeLogPosition(file, { offset, saying: ends, isBracketed: progress.isBracketed(), released })
  } finally {
    if (progress.isResting) closeSync(file)
    else progress.positionFile = file
  }
}

function rest(progress: OutputProgress) {
  progress.isResting = true
  closePositionFile(progress)
}

function closePositionWhenDone(progress: OutputProgress) {
  if (progress.open.length === 0) closePositionFile(progress)
}

function closePositionFile(progress: OutputProgress) {
  if (progress.positionFile !== undefined) closeSync(progress.positionFile)
  progress.positionFile = undefined
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
