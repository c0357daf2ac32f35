/**
 * A control-mode client of our tmux server: commands go in as lines, blocks come back in order. Message text is
 * never put on a command line.
 */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { createLineSplitter } from '../../programs/line-splitter.ts'
import { type Block, createControlReader } from './control-reader.ts'
import { commandLine } from './quoting.ts'

export type TmuxCommand = readonly string[]

export type Control = ReturnType<typeof openControl>

export class ControlLost extends Error {
  readonly reason: string
  constructor(reason: string) {
    super(`lost the connection to tmux: ${reason}`)
    this.reason = reason
    this.name = 'ControlLost'
  }
}

interface ControlOptions {
  /** The full command line, starting with `tmux`. */
  argv: readonly string[]
  env: Readonly<Record<string, string>>
  onNotification(name: string, rest: string): void
  /**
   * The client ended; `reason` is its last output. Called before pending commands are rejected, so that
   * they find the next client.
   */
  onEnd(reason: string): void
}

interface PendingCommand {
  mark: string
  blocks: Block[]
  resolve(blocks: readonly Block[]): void
  reject(error: Error): void
}

const STDERR_LIMIT = 2000
/** Far above the widest screen. */
const MAX_LINE_BYTES = 64 * 2 ** 20

export function openControl({ argv, env, onNotification, onEnd }: ControlOptions) {
  const child = spawn(argv[0]!, argv.slice(1), { env, stdio: ['pipe', 'pipe', 'pipe'] })
  // Blocks contain screen text, so the end marker must be unguessable.
  const secret = randomBytes(8).toString('hex')
  const waiting: PendingCommand[] = []
  let count = 0
  let lastError = ''
  let lost: ControlLost | undefined
  const { promise: ended, resolve: reportEnded } = Promise.withResolvers<void>()

  const readLine = createControlReader(
    (block) => {
      const first = waiting[0]
      if (first === undefined) return
      if (block.lines.length === 1 && block.lines[0] === first.mark) {
        waiting.shift()
        first.resolve(first.blocks)
      } else {
        first.blocks.push(block)
      }
    },
    (name, rest) => {
      if (name === 'exit') lastError ||= rest
      onNotification(name, rest)
    },
  )
  const splitter = createLineSplitter(MAX_LINE_BYTES)

  child.stdout.on('data', (chunk: Buffer) => {
    for (const { text } of splitter.split(chunk)) if (text !== undefined) readLine(text)
  })
  child.stderr.on('data', (chunk: Buffer) => {
    lastError = (lastError + chunk.toString()).slice(-STDERR_LIMIT)
  })
  child.stdin.on('error', () => {})
  child.on('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message))
  child.on('close', (code, signal) => end(lastError.trim() || `it ended with ${signal ?? code}`))

  function end(reason: string) {
    if (lost !== undefined) return
    lost = new ControlLost(reason)
    onEnd(reason)
    for (const { reject } of waiting.splice(0)) reject(lost)
    reportEnded()
  }

  return {
    /**
     * Runs the commands as one line. Resolves with one block per executed command; the first failed one is the
     * last. Rejects with ControlLost if the client ends first: then it is unknown whether they ran.
     */
    run(commands: readonly TmuxCommand[]): Promise<readonly Block[]> {
      if (lost !== undefined) return Promise.reject(lost)
      const mark = `${secret}-${++count}`
      // On its own line: a failed command discards the rest of its line but not the next.
      const text = `${commandLine(commands)}\ndisplay-message -p ${mark}\n`
      return new Promise((resolve, reject) => {
        waiting.push({ mark, blocks: [], resolve, reject })
        child.stdin.write(text)
      })
    },
    /** Resolves once the client has ended. */
    close(): Promise<void> {
      // An empty line would also detach, but only after everything queued.
      child.stdin.end()
      child.kill('SIGTERM')
      return ended
    },
  }
}
