/** One client of our tmux server in control mode: commands go in as lines, answers come back in order. */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { type Block, createControlReader } from './control-lines.ts'
import { commandLine } from './quote.ts'

export type Command = readonly string[]

export interface Control {
  /**
   * Runs the commands in one go. Resolves with one block per command that ran; the first that fails is the last one.
   * Rejects with ControlLost when the client ends first: then nobody knows whether they ran.
   */
  run(commands: readonly Command[]): Promise<readonly Block[]>
  /** Resolves when it has ended. */
  close(): Promise<void>
}

export class ControlLost extends Error {
  constructor(reason: string) {
    super(`the connection to tmux was lost: ${reason}`)
    this.name = 'ControlLost'
  }
}

export interface ControlOptions {
  /** All of the command line, `tmux` first. */
  argv: readonly string[]
  env: Readonly<Record<string, string>>
  onNotification(name: string, rest: string): void
  /** It has ended, and what it said last. Called before those who wait are told, so that they find the next one. */
  onEnd(reason: string): void
}

interface Waiting {
  mark: string
  blocks: Block[]
  resolve(blocks: readonly Block[]): void
  reject(error: Error): void
}

const STDERR_LIMIT = 2000

export function openControl({ argv, env, onNotification, onEnd }: ControlOptions): Control {
  const child = spawn(argv[0]!, argv.slice(1), { env, stdio: ['pipe', 'pipe', 'pipe'] })
  // Screen text comes back in blocks: what ends an answer must be nothing that a screen can show.
  const secret = randomBytes(8).toString('hex')
  const waiting: Waiting[] = []
  let count = 0
  let complaint = ''
  let lost: ControlLost | undefined
  const { promise: ended, resolve: tellEnded } = Promise.withResolvers<void>()

  const reader = createControlReader((block) => {
    const first = waiting[0]
    if (first === undefined) return
    if (block.lines.length === 1 && block.lines[0] === first.mark) {
      waiting.shift()
      first.resolve(first.blocks)
    } else {
      first.blocks.push(block)
    }
  }, onNotification)
  const lines = createLineSplitter(reader.line)

  child.stdout.on('data', (chunk: Buffer) => lines.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => {
    complaint = (complaint + chunk.toString()).slice(-STDERR_LIMIT)
  })
  child.stdin.on('error', () => {})
  child.on('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message))
  child.on('close', (code, signal) => end(complaint.trim() || `it ended with ${signal ?? code}`))

  function end(reason: string) {
    if (lost !== undefined) return
    lost = new ControlLost(reason)
    onEnd(reason)
    for (const { reject } of waiting.splice(0)) reject(lost)
    tellEnded()
  }

  return {
    run(commands) {
      if (lost !== undefined) return Promise.reject(lost)
      const mark = `${secret}-${++count}`
      // On a line of its own: a command that fails takes the rest of its line with it, and never this one.
      const text = `${commandLine(commands)}\ndisplay-message -p ${mark}\n`
      return new Promise((resolve, reject) => {
        waiting.push({ mark, blocks: [], resolve, reject })
        child.stdin.write(text)
      })
    },
    close() {
      // An empty line would detach as well, but only after what is queued.
      child.stdin.end()
      child.kill('SIGTERM')
      return ended
    },
  }
}

/** Splits at newlines only; other bytes, and characters cut in two, are left for the line's own decoding. */
function createLineSplitter(onLine: (line: string) => void) {
  let rest: Buffer[] = []
  return {
    push(chunk: Buffer) {
      let from = 0
      for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
        const piece = chunk.subarray(from, at)
        onLine(rest.length === 0 ? piece.toString() : Buffer.concat([...rest, piece]).toString())
        rest = []
        from = at + 1
      }
      // A copy: a slice would hold on to the whole chunk.
      if (from < chunk.length) rest.push(Buffer.from(chunk.subarray(from)))
    },
  }
}
