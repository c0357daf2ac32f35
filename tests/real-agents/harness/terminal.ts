import { execFile } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { endProcessesOf } from './leftovers.ts'

const execute = promisify(execFile)

/** A tmux pane on a socket of its own, with a program in it, as a person would look at it. */
export interface Terminal {
  /** The visible screen, without colours. */
  screen(): Promise<string>
  /** Resolves with the screen once it matches; rejects with the last screen after the timeout. */
  shows(what: RegExp, timeoutMs?: number): Promise<string>
  /** Types like a person: no bracketed paste, no Enter. */
  type(text: string): Promise<void>
  /** Enters a line like a person: presses Enter once the screen shows it. */
  enter(line: string): Promise<void>
  /** By tmux's names, such as `Enter`, `Escape`. */
  press(...keys: string[]): Promise<void>
  close(): Promise<void>
}

export interface TerminalOptions {
  readonly argv: readonly string[]
  readonly cwd: string
  /** Needs a HOME of its own: `close` ends every process with that HOME. */
  readonly env: Readonly<Record<string, string>>
}

/** Codex and Gemini treat an Enter as part of a paste if it follows the last letter faster than a person would press it. */
export const TYPING_PAUSE_MS = 200
/** Programs are slow on a busy machine, and much slower to start. */
const PATIENCE_MS = 120_000

let opened = 0

export async function openTerminal({ argv, cwd, env }: TerminalOptions): Promise<Terminal> {
  const socket = `orchub-test-${process.pid}-${opened++}`
  const tmux = async (...args: string[]) =>
    (await execute('tmux', ['-L', socket, '-f', '/dev/null', ...args], { env, cwd })).stdout
  const size = ['-x', '120', '-y', '40']
  await tmux('new-session', '-d', ...size, '-c', cwd, ...argv, ';', 'set-option', 'remain-on-exit', 'on')
  const screen = () => tmux('capture-pane', '-p')

  async function shows(what: RegExp, timeoutMs = PATIENCE_MS): Promise<string> {
    const until = Date.now() + timeoutMs
    for (;;) {
      const text = await screen()
      if (what.test(text)) return text
      if (Date.now() > until) throw new Error(`The screen never shows ${what}:\n${text}`)
      await sleep(100)
    }
  }

  const type = async (text: string) => void (await tmux('send-keys', '-l', '--', text))
  const press = async (...keys: string[]) => void (await tmux('send-keys', ...keys))

  return {
    screen,
    shows,
    type,
    press,
    async enter(line) {
      await type(line)
      await shows(new RegExp(RegExp.escape(line)))
      await sleep(TYPING_PAUSE_MS)
      await press('Enter')
    },
    async close() {
      await tmux('kill-server').catch(() => {})
      await endProcessesOf(env.HOME)
    },
  }
}
