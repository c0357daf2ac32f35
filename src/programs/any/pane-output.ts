/**
 * A program's output, cut into texts at its prompt, each passed on once: the saved position advances only after a text
 * was processed, and the same bytes repeated have the same key (C25).
 * A text is `current` (it grows until the prompt is back), then `waiting` (MAX_OPEN_TEXTS are being processed already), then
 * `open` (passed on, not processed yet). Processing may take until the end of the turn, so the next text does not wait for
 * it; but the position stays before the first open text, or a crash would lose it. After a failure nothing more is passed on
 * or saved. After `close`, texts that are still open may end and be saved, until another session uses the log.
 */
import { isDeepStrictEqual } from 'node:util'
import type { SessionPort } from '../../runtimes/runtime.ts'
import {
  type LogPosition,
  MAX_OPEN_TEXTS,
  readLogPosition,
  releaseBefore,
  saveLogPosition,
} from './pane-log.ts'
import type { Patterns } from './patterns.ts'
import { createPlainText, type PlainText } from './plain-text.ts'

interface PaneOutputOptions {
  folder: string
  path: string
  /** Identifies the launch; offsets alone would mean other bytes in another log. */
  run: string
  patterns: Patterns
  port: Pick<SessionPort, 'onText'>
  /** Everything before it was passed on and processed. */
  offset: number
  /** An earlier service passed on the text up to here: it is repeated, not pushed. */
  begun: number
  /** Everything before it was freed on disk. */
  released: number
  isBracketed(): boolean
  /** A text could not be processed. Nothing more is passed on, and the position stays. */
  onFailure(error: unknown): void
}

/** A text by its offsets in the log. */
interface CutText {
  readonly from: number
  readonly to: number
  readonly text: string
  isDone: boolean
}

/** A longer text is passed on without a prompt, so that a program that never shows one takes no more memory. */
const MAX_TEXT_LENGTH = 1 << 20
/** Free the log on disk in steps of this size. */
const RELEASE_EVERY = 32 << 20

export function createPaneOutput(options: PaneOutputOptions) {
  const { folder, path, run, patterns, port } = options
  /** Offsets of the current text. */
  let start = options.begun
  let end = options.begun
  let current: GrowingText | undefined
  let { released, offset } = options
  let hasFailed = false
  let isClosed = false
  let lastSaved: LogPosition | undefined
  const open: CutText[] = []
  const waiting: CutText[] = []

  function enqueue(cut: CutText) {
    waiting.push(cut)
    // Not before the caller has read everything: the saved position covers all texts that wait.
    queueMicrotask(sayWaiting)
  }

  function fail(error: unknown) {
    if (!hasFailed) options.onFailure(error)
    hasFailed = true
  }

  function sayWaiting() {
    try {
      while (!hasFailed && !isClosed && waiting.length > 0 && open.length < MAX_OPEN_TEXTS)
        say(waiting.shift()!)
    } catch (error) {
      fail(error)
    }
  }

  function say(cut: CutText) {
    open.push(cut)
    if (cut.text.trim() === '') return finish(cut)
    savePosition()
    port
      .onText({ channel: 'pane', text: cut.text, key: `${run}:${cut.from}` })
      .then(() => finish(cut))
      .then(sayWaiting)
      .catch(fail)
  }

  function finish(cut: CutText) {
    cut.isDone = true
    if (hasFailed || open[0] !== cut) return
    while (open[0]?.isDone) offset = open.shift()!.to
    const isReleaseDue = !isClosed && offset - released >= RELEASE_EVERY
    if (isReleaseDue) released = offset
    savePosition()
    if (isReleaseDue) releaseBefore(path, offset)
  }

  /** Includes waiting texts: an earlier service may have passed them on, and they must be cut at the same offsets. */
  function savePosition() {
    if (isClosed && !isDeepStrictEqual(readLogPosition(folder), lastSaved)) return
    const ends = [...open, ...waiting].slice(0, MAX_OPEN_TEXTS).map(({ to }) => to)
    lastSaved = { offset, openTexts: ends, isBracketed: options.isBracketed(), released }
    saveLogPosition(folder, lastSaved)
  }

  function cut() {
    if (current === undefined || !current.plain.isWhole()) return
    enqueue({ from: start, to: end, text: textOf(current, patterns), isDone: false })
    start = end
    current = undefined
  }

  return {
    push(bytes: Buffer) {
      current ??= startText()
      current.plain.push(bytes)
      end += bytes.length
      if (current.length() > MAX_TEXT_LENGTH) cut()
    },
    /** The prompt is back: the output since the last one is one text. */
    cut,
    /** Repeats a text that was open when the service ended. */
    repeat(from: number, to: number, bytes: Buffer) {
      const repeated = startText()
      repeated.plain.push(bytes)
      enqueue({ from, to, text: textOf(repeated, patterns), isDone: false })
    },
    /** Everything before it was freed on disk. */
    released: () => released,
    close() {
      isClosed = true
    },
  }
}

interface GrowingText {
  plain: PlainText
  lines: string[]
  length(): number
}

function startText(): GrowingText {
  const lines: string[] = []
  let length = 0
  const plain = createPlainText((line) => {
    lines.push(line)
    length += line.length + 1
  })
  return { plain, lines, length: () => length }
}

/** Without the prompt that ended it. */
function textOf({ plain, lines }: GrowingText, patterns: Patterns): string {
  const prompt = patterns.promptIn(plain.line())
  return [...lines, prompt === undefined ? plain.line() : plain.line().slice(0, prompt)].join('\n')
}
