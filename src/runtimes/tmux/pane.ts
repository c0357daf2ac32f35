/** The terminal of one agent: what a program may do with it, and what the runtime does. */
import { join } from 'node:path'
import type { Pane } from '../../programs/program.ts'
import type { Clock } from '../clock.ts'
import { watchStrays } from '../orphan-processes.ts'
import type { Keyboard, Picture } from '../picture.ts'
import { hasReadInput } from './input-queue.ts'
import { openKeyboard } from './keyboard.ts'
import type { Log } from './log.ts'
import { paste } from './paste.ts'
import { spool } from './paste-buffer.ts'
import type { PasteSite } from './paste-target.ts'
import { enterUnsent, giveBackInput, type LeftInput, noteTaken } from './pending-input.ts'
import { commandLine, quoteForShell, withoutTimeFormats } from './quote.ts'
import { captureScreen, readScreen } from './screen.ts'
import type { Server } from './server.ts'
import { takePicture } from './terminal-snapshot.ts'

export interface TmuxPane extends Pane {
  readonly id: string
  /** Why a paste has not been written yet. */
  waitsFor(): string | undefined
  /** Puts text above the pane. */
  show(label: string): void
  /** The end of what it showed, further back than the screen if need be. */
  tail(lines: number): Promise<string>
  /** What it shows right now, with its colours. */
  picture(): Promise<Picture>
  /** A person takes it over: nothing is written into it until they let go. */
  takeOver(by: string): Keyboard
  /** What a dead pane shows, without tmux's own remark and the blank lines. */
  lastWords(): Promise<string>
  /** Lets a paste that waits look again. */
  stir(): void
  /** Nothing is looked for any more. */
  close(): void
  kill(): Promise<void>
}

export interface PaneOptions {
  server: Server
  clock: Clock
  log: Pick<Log, 'warn'>
  id: string
  pid: number
  folder: string
  /** Found again: someone may have typed while nobody looked. */
  isFound: boolean
  /** Found with it: a text of ours that was not entered, or not seen taken. */
  left?: LeftInput | undefined
  /** What keeps a paste from being written, whenever that changes. */
  onWaits?(reason: string | undefined): void
}

export const LOG_FILE = 'pane.log'
const LABEL_LIMIT = 200
/** Nobody is left with a dead keyboard because a program does not come to its prompt. */
const INPUT_BACK_MS = 10_000
const LAST_WORDS_FROM = 100
const LAST_WORDS = 12

export function createPane(options: PaneOptions): TmuxPane {
  const { server, clock, log, id, pid, folder, isFound, left, onWaits } = options
  let waiting: (() => void)[] = []
  let label: string | undefined
  let spooled = 0
  let waitsFor: string | undefined

  const site: PasteSite = {
    server,
    clock,
    log,
    pane: id,
    boxEmptyAt: isFound ? undefined : clock.now(),
    hasReadInput: () => hasReadInput(pid),
    unsent: left?.unsent,
    enteredAt: left?.isEntered ? clock.now() : undefined,
    takenBy: undefined,
    typedAt: undefined,
    watching: undefined,
    waits(reason) {
      if (reason === waitsFor) return
      waitsFor = reason
      onWaits?.(reason)
    },
    stirred: (ms, gone) =>
      new Promise((resolve) => {
        const wake = () => {
          cancel()
          waiting = waiting.filter((one) => one !== wake)
          gone?.removeEventListener('abort', wake)
          resolve()
        }
        const cancel = clock.after(ms, wake)
        gone?.addEventListener('abort', wake)
        waiting.push(wake)
      }),
    spool: (text) => spool(folder, `orc-${process.pid}-${id.slice(1)}-${++spooled}`, text),
  }

  const cancelInputBack = left?.isInputOff
    ? clock.after(INPUT_BACK_MS, () => {
        void giveBackInput(site)
      })
    : undefined

  return {
    id,
    pid,
    watchStrays: () =>
      watchStrays(pid, (error) =>
        log.warn({ pane: id, err: error }, 'what a stopped turn left running could not be ended'),
      ),
    // Once it was entered, the conversation tells of it.
    unsent: () => (site.unsent?.presses === undefined ? site.unsent?.lastLine : undefined),
    waitsFor: () => waitsFor,
    async log() {
      const path = join(folder, LOG_FILE)
      // Not when it is piped already, as it is from the start where the program said so: `-o` would end that pipe.
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
    paste: (turn, manner) => paste(site, turn, manner),
    hasReadInput: site.hasReadInput,
    enterUnsent: (manner) => enterUnsent(site, manner),
    taken: (ids) => noteTaken(site, ids),
    async press(keys) {
      await server.run([
        ...['if-shell', '-F', '-t', id, '#{==:#{pane_dead}#{pane_in_mode},00}'],
        commandLine([['send-keys', '-t', id, ...keys]]),
      ])
    },
    show(next) {
      // `#` would begin a style of tmux's.
      const text = next.replace(/[\u0000-\u001f\u007f-\u009f#]/g, ' ').slice(0, LABEL_LIMIT)
      if (text === label) return
      label = text
      server.run(['set-option', '-p', '-t', id, '@orc_title', text]).catch(() => {
        label = undefined
      })
    },
    tail: async (lines) => (await tailOf(server, id, lines)).join('\n'),
    picture: () => takePicture(server, id),
    takeOver: (by) => openKeyboard(site, by),
    async lastWords() {
      const lines = await tailOf(server, id, LAST_WORDS_FROM)
      const isWords = (line: string) => line !== '' && !line.startsWith('Pane is dead')
      return lines.filter(isWords).slice(-LAST_WORDS).join('\n')
    },
    stir() {
      for (const wake of [...waiting]) wake()
    },
    close() {
      site.watching?.abort()
      cancelInputBack?.()
    },
    async kill() {
      await server.run(['kill-pane', '-t', id])
    },
  }
}

async function tailOf(server: Server, id: string, lines: number): Promise<string[]> {
  const [shown] = await server.run(['capture-pane', '-p', '-J', '-S', `-${lines}`, '-t', id])
  const text = shown!.lines.map((line) => line.trimEnd())
  while (text.at(-1) === '') text.pop()
  return text.slice(-lines)
}

/** What tmux runs to keep everything that a pane prints. */
export function pipeCommand(path: string): string {
  return withoutTimeFormats(`umask 077; exec cat >> ${quoteForShell(path)}`)
}
