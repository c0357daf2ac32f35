/**
 * The terminal of an agent, as used by its program and by the runtime.
 * A pane is `free`, `blocked` (a paste waits for `blockedReason` to go away; `wake` and notifications of tmux
 * let it retry), `pending` (our text is in the input box without its Enter, see pending-input.ts) or `taken
 * over` (a person types from the control room; nothing is pasted until they release the keyboard).
 * KEYBOARD_RETURN_MS limits how long input found switched off stays off: long enough for a program to reach
 * its prompt, short enough for a person who waits to type.
 */

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { Pane } from '../../programs/program.ts'
import { watchOrphans } from '../end-interrupted-commands.ts'
import type { TerminalKeyboard, TerminalSnapshot } from '../runtime.ts'
import { captureScreen, readScreen, takeTerminalSnapshot } from './pane-snapshot.ts'
import { createPasteBuffer, loadBuffer, paste } from './paste.ts'
import {
  noteAccepted,
  type PasteTarget,
  type PendingInput,
  returnKeyboard,
  submitPending,
} from './pending-input.ts'
import { commandLine, quoteForShell, withoutControls, withoutTimeFormats } from './quoting.ts'
import type { TmuxServer } from './server.ts'

export interface TmuxPane extends Pane {
  readonly id: string
  /** Why a paste has not been written yet. */
  blockedBy(): string | undefined
  /** Sets the label above the pane. */
  show(label: string): void
  /** The last lines of its output, including scrollback. */
  lastLines(lines: number): Promise<string>
  /** Current content with colours. */
  snapshot(): Promise<TerminalSnapshot>
  /** Lets a person type; nothing else is written until they release the keyboard. */
  takeOver(by: string): TerminalKeyboard
  /** The last output of a dead pane, without tmux's own remark and blank lines. */
  lastOutput(): Promise<string>
  /** Lets a waiting paste check again. */
  wake(): void
  /** Stops all watching. */
  close(): void
  kill(): Promise<void>
}

interface PaneOptions {
  server: TmuxServer
  clock: Clock
  log: Pick<Log, 'warn'>
  id: string
  pid: number
  folder: string
  /** Reattached: a person may have typed while no service watched. */
  isFound: boolean
  /** Our text that an earlier service pasted, but did not submit or did not see accepted. */
  pendingInput?: PendingInput | undefined
  /** Called whenever the reason that blocks a paste changes. */
  onBlocked?(reason: string | undefined): void
}

export const LOG_FILE = 'pane.log'
const LABEL_LIMIT = 200
/** Give the keyboard back after this long even if the program does not reach its prompt. */
const KEYBOARD_RETURN_MS = 10_000
const LAST_OUTPUT_SEARCH = 100
const LAST_OUTPUT_LINES = 12

export function createPane(options: PaneOptions): TmuxPane {
  const { server, clock, log, id, pid, folder, isFound, pendingInput: left, onBlocked } = options
  let waiting: (() => void)[] = []
  let label: string | undefined
  let buffer = 0
  let blockedReason: string | undefined

  const target: PasteTarget = {
    server,
    clock,
    log,
    pane: id,
    boxEmptyAt: isFound ? undefined : clock.now(),
    hasReadInput: () => hasReadInput(pid),
    pending: left?.text,
    pendingEnteredAt: left?.isEntered ? clock.now() : undefined,
    takenBy: undefined,
    typedAt: undefined,
    blockedWatch: undefined,
    setBlocked(reason) {
      if (reason === blockedReason) return
      blockedReason = reason
      onBlocked?.(reason)
    },
    waitForChange: (ms, signal) =>
      new Promise((resolve) => {
        const wake = () => {
          cancel()
          waiting = waiting.filter((one) => one !== wake)
          signal?.removeEventListener('abort', wake)
          resolve()
        }
        const cancel = clock.after(ms, wake)
        signal?.addEventListener('abort', wake)
        waiting.push(wake)
      }),
    createBuffer: (text) => createPasteBuffer(folder, `orc-${process.pid}-${id.slice(1)}-${++buffer}`, text),
  }

  const cancelInputBack = left?.isInputOff
    ? clock.after(KEYBOARD_RETURN_MS, () => {
        void returnKeyboard(target)
      })
    : undefined

  return {
    id,
    pid,
    watchOrphans: () =>
      watchOrphans(pid, (error) =>
        log.warn(
          { pane: id, err: error },
          'could not end the processes that an interrupted turn left running',
        ),
      ),
    // After Enter, the conversation shows whether it was accepted.
    pendingText: () => (target.pending?.presses === undefined ? target.pending?.lastLine : undefined),
    blockedBy: () => blockedReason,
    async log() {
      const path = join(folder, LOG_FILE)
      // Skip if it is piped already: `-o` would close that pipe.
      await server.run([
        ...['if-shell', '-F', '-t', id, '#{==:#{pane_pipe},0}'],
        commandLine([['pipe-pane', '-t', id, pipeCommand(path)]]),
      ])
      return path
    },
    async screen() {
      const [cursor, joined, rows] = await server.run(
        ['display-message', '-p', '-t', id, '#{cursor_x} #{cursor_y}'],
        ...captureScreen(id),
      )
      const [x, y] = cursor!.lines[0]!.split(' ').map(Number) as [number, number]
      return readScreen(joined!, rows!, { x, y })
    },
    paste: (turn, pasteOptions) => paste(target, turn, pasteOptions),
    hasReadInput: target.hasReadInput,
    submitPending: (options) => submitPending(target, options),
    markAccepted: (ids) => noteAccepted(target, ids),
    async press(keys) {
      await server.run([
        ...['if-shell', '-F', '-t', id, '#{==:#{pane_dead}#{pane_in_mode},00}'],
        commandLine([['send-keys', '-t', id, ...keys]]),
      ])
    },
    show(next) {
      // `#` would start a tmux style.
      const text = next.replace(/[\u0000-\u001f\u007f-\u009f#]/g, ' ').slice(0, LABEL_LIMIT)
      if (text === label) return
      label = text
      server.run(['set-option', '-p', '-t', id, '@orc_title', text]).catch(() => {
        label = undefined
      })
    },
    lastLines: async (lines) => (await captureLines(server, id, lines)).join('\n'),
    snapshot: () => takeTerminalSnapshot(server, id),
    takeOver: (by) => openKeyboard(target, by),
    async lastOutput() {
      const lines = await captureLines(server, id, LAST_OUTPUT_SEARCH)
      const isWords = (line: string) => line !== '' && !line.startsWith('Pane is dead')
      return lines.filter(isWords).slice(-LAST_OUTPUT_LINES).join('\n')
    },
    wake() {
      for (const wake of [...waiting]) wake()
    },
    close() {
      target.blockedWatch?.abort()
      cancelInputBack?.()
    },
    async kill() {
      await server.run(['kill-pane', '-t', id])
    },
  }
}

async function captureLines(server: TmuxServer, id: string, lines: number): Promise<string[]> {
  const [shown] = await server.run(['capture-pane', '-p', '-J', '-S', `-${lines}`, '-t', id])
  const text = shown!.lines.map((line) => line.trimEnd())
  while (text.at(-1) === '') text.pop()
  return text.slice(-lines)
}

/** The shell command with which tmux logs everything a pane prints. */
export function pipeCommand(path: string): string {
  return withoutTimeFormats(`umask 077; exec cat >> ${quoteForShell(path)}`)
}

/**
 * By name, tmux sends the byte sequence that the program requested; a browser's terminal may send another
 * one.
 */
const KEY_NAMES: Readonly<Record<string, string>> = {
  '\u001b[A': 'Up',
  '\u001b[B': 'Down',
  '\u001b[C': 'Right',
  '\u001b[D': 'Left',
  '\u001b[H': 'Home',
  '\u001b[F': 'End',
}
/** Well below the longest line tmux accepts. */
const MAX_KEYS_PER_COMMAND = 512

function openKeyboard(target: PasteTarget, by: string): TerminalKeyboard {
  const { server, clock, pane } = target
  target.takenBy = by
  return {
    async type(keys) {
      target.typedAt = clock.now()
      const named = KEY_NAMES[keys]
      if (named !== undefined) {
        await server.run(['send-keys', '-t', pane, named])
        return
      }
      const bytes = [...Buffer.from(keys)].map((byte) => byte.toString(16).padStart(2, '0'))
      for (let at = 0; at < bytes.length; at += MAX_KEYS_PER_COMMAND) {
        await server.run(['send-keys', '-H', '-t', pane, ...bytes.slice(at, at + MAX_KEYS_PER_COMMAND)])
      }
    },
    async paste(text) {
      target.typedAt = clock.now()
      const buffer = target.createBuffer(withoutControls(text))
      try {
        buffer.writeFile()
        await server.run(loadBuffer(buffer), ['paste-buffer', '-p', '-d', '-b', buffer.name, '-t', pane])
      } finally {
        buffer.remove()
      }
    },
    release() {
      target.takenBy = undefined
      // The next snapshot must read the input box again.
      target.boxEmptyAt = undefined
    },
  }
}

/** Checks whether a program has consumed the input written to its terminal. */
const MAX_CHECKS = 20
const CHECK_EVERY_MS = 25
/** In a row, since a single check may fall between two steps of its work. */
const CHECKS_ASLEEP = 3

/**
 * A sleeping program has no unread input, or the kernel would have woken it. A stopped or busy one may not
 * have read it yet, and its screen may be outdated. Without /proc this is unknowable, and the screen must
 * suffice.
 */
async function hasReadInput(leader: number): Promise<boolean> {
  let asleep = 0
  for (let look = 0; look < MAX_CHECKS && asleep < CHECKS_ASLEEP; look++) {
    if (look > 0) await sleep(CHECK_EVERY_MS)
    const states = statesAtTerminal(leader)
    if (states === undefined) return true
    asleep = states.every((state) => state === 'S' || state === 'I') ? asleep + 1 : 0
  }
  return asleep >= CHECKS_ASLEEP
}

/** States of all threads in the foreground process group of the leader's terminal. */
function statesAtTerminal(leader: number): string[] | undefined {
  const of = readInputStat(`/proc/${leader}/stat`)
  if (of === undefined) return undefined
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      const stat = readInputStat(`/proc/${pid}/stat`)
      return stat?.terminal === of.terminal && stat.group === of.foreground && !/[ZX]/.test(stat.state)
    })
    .flatMap((pid) =>
      threadsOf(pid).map((thread) => readInputStat(`/proc/${pid}/task/${thread}/stat`)?.state ?? 'S'),
    )
}

function threadsOf(pid: string): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`)
  } catch {
    return []
  }
}

function readInputStat(path: string) {
  try {
    const text = readFileSync(path, 'utf8')
    // The parenthesised name may contain anything, including parentheses.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return { state: fields[0]!, group: fields[2]!, terminal: fields[4]!, foreground: fields[5]! }
  } catch {
    return undefined
  }
}
