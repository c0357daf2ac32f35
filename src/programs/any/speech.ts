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
  /** The place stays where it is. */
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

export function createSpeech(options: SpeechOptions): Speech {
  const { folder, path, run, patterns, port, isBracketed, onFailure } = options
  let start = options.begun
  let end = start
  let { released } = options
  /** None while the program is silent: most of a team is, most of the time. */
  let current: Utterance | undefined
  let hasFailed = false
  let isClosed = false
  let placeFile: number | undefined
  /** All before it was said and done. */
  let doneUpTo = options.offset
  /**
   * Said, in order, from the first that is not done. An answer may wait for the end of the turn: the next utterance must
   * not wait for it, but the place must not pass it either, or a crash would lose it.
   */
  const open: Cut[] = []
  const waiting: Cut[] = []

  function cut() {
    if (current === undefined || !current.text.isWhole()) return
    const words = wordsOf(current, patterns)
    const from = start
    start = end
    current = undefined
    sayNext({ from, to: end, words, isDone: false })
  }

  function sayNext(one: Cut) {
    waiting.push(one)
    Promise.resolve().then(goOn).catch(fail)
  }

  function fail(error: unknown) {
    if (!hasFailed) onFailure(error)
    hasFailed = true
  }

  function goOn() {
    while (!hasFailed && waiting.length > 0 && open.length < MAX_SAYING) say(waiting.shift()!)
  }

  function say(one: Cut) {
    open.push(one)
    if (one.words.trim() === '') return finish(one)
    keepPlace()
    port
      .said({ channel: 'pane', text: one.words, key: `${run}:${one.from}` })
      .then(() => finish(one))
      .then(goOn)
      .catch(fail)
  }

  function finish(one: Cut) {
    one.isDone = true
    if (hasFailed || open[0] !== one) return
    while (open[0]?.isDone) doneUpTo = open.shift()!.to
    const isReleaseDue = doneUpTo - released >= RELEASE_EVERY
    if (isReleaseDue) released = doneUpTo
    keepPlace()
    if (isReleaseDue) releaseBefore(path, doneUpTo)
  }

  /** Those that wait too: they may have been said before a restart, and would be cut elsewhere after the next. */
  function keepPlace() {
    if (isClosed) return
    placeFile ??= openPlace(folder)
    const saying = [...open, ...waiting].slice(0, MAX_SAYING).map(({ to }) => to)
    writePlace(placeFile, { offset: doneUpTo, saying, isBracketed: isBracketed(), released })
  }

  return {
    push(bytes) {
      current ??= startUtterance()
      current.text.push(bytes)
      end += bytes.length
      if (current.length() > LIMIT) cut()
    },
    cut,
    released: () => released,
    close() {
      isClosed = true
      if (placeFile !== undefined) closeSync(placeFile)
    },
    repeat(from, to, bytes) {
      const utterance = startUtterance()
      utterance.text.push(bytes)
      sayNext({ from, to, words: wordsOf(utterance, patterns), isDone: false })
    },
  }
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
