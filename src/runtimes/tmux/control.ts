/**
 * A control-mode client of our tmux server: commands go in as lines, blocks come back in order. Message text is
 * never put on a command line.
 */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { createLineSplitter } from '../../programs/line-splitter.ts'

export type TmuxCommand = readonly string[]

export interface Control {
  /**
   * Runs the commands as one line. Resolves with one block per executed command; the first failed one is the
   * last. Rejects with ControlLost if the client ends first: then it is unknown whether they ran.
   */
  run(commands: readonly TmuxCommand[]): Promise<readonly Block[]>
  /** Resolves once the client has ended. */
  close(): Promise<void>
}

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
   * The client ended; `reason` is what it said last. Called before pending commands are rejected, so that
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

export function openControl({ argv, env, onNotification, onEnd }: ControlOptions): Control {
  const child = spawn(argv[0]!, argv.slice(1), { env, stdio: ['pipe', 'pipe', 'pipe'] })
  // Blocks contain screen text, so the end marker must be unguessable.
  const secret = randomBytes(8).toString('hex')
  const waiting: PendingCommand[] = []
  let count = 0
  let complaint = ''
  let lost: ControlLost | undefined
  const { promise: ended, resolve: tellEnded } = Promise.withResolvers<void>()

  const reader = createControlReader(
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
      if (name === 'exit') complaint ||= rest
      onNotification(name, rest)
    },
  )
  const splitter = createLineSplitter(MAX_LINE_BYTES)

  child.stdout.on('data', (chunk: Buffer) => {
    for (const { text } of splitter.split(chunk)) if (text !== undefined) reader.line(text)
  })
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
      // On its own line: a failed command discards the rest of its line but not the next.
      const text = `${commandLine(commands)}\ndisplay-message -p ${mark}\n`
      return new Promise((resolve, reject) => {
        waiting.push({ mark, blocks: [], resolve, reject })
        child.stdin.write(text)
      })
    },
    close() {
      // An empty line would also detach, but only after everything queued.
      child.stdin.end()
      child.kill('SIGTERM')
      return ended
    },
  }
}

export interface Block {
  readonly lines: readonly string[]
  readonly isError: boolean
}

interface ControlReader {
  /** Complete lines without their newline. */
  line(text: string): void
}

const BLOCK_LINE = /^%(begin|end|error) (\d+) (\d+) (\d+)$/
/** Set on blocks of the client's own commands, but not on that of the command that attached it. */
const CLIENT_FLAG = '1'

/**
 * Parses control-mode output: blocks that respond to our commands, and notifications in between. Blocks
 * contain raw screen text, so a block ends only at the exact numbers it began with. tmux never puts a
 * notification inside a block.
 */
export function createControlReader(
  onBlock: (block: Block) => void,
  onNotification: (name: string, rest: string) => void,
): ControlReader {
  let open: { id: string; isOurs: boolean; lines: string[] } | undefined

  return {
    line(text) {
      const guard = BLOCK_LINE.exec(text)
      if (open !== undefined) {
        const isEnd =
          guard !== null && guard[1] !== 'begin' && `${guard[2]} ${guard[3]} ${guard[4]}` === open.id
        if (!isEnd) {
          open.lines.push(text)
          return
        }
        const { isOurs, lines } = open
        open = undefined
        if (isOurs) onBlock({ lines, isError: guard[1] === 'error' })
      } else if (guard?.[1] === 'begin') {
        open = { id: `${guard[2]} ${guard[3]} ${guard[4]}`, isOurs: guard[4] === CLIENT_FLAG, lines: [] }
      } else if (text.startsWith('%')) {
        const space = text.indexOf(' ')
        if (space < 0) onNotification(text.slice(1), '')
        else onNotification(text.slice(1, space), text.slice(space + 1))
      }
      // Ignore anything else: it is a late error of an asynchronous command such as load-buffer, and the
      // command that depends on it fails.
    },
  }
}

/** A control character could end the line and start another command. */
const CONTROLS = /[\u0000-\u001f\u007f]/

/** Quotes one argument of a tmux command. Throws on control characters, which only a bug could put there. */
export function quoteArgument(argument: string): string {
  if (CONTROLS.test(argument)) {
    throw new Error(`not an argument for tmux: ${JSON.stringify(argument.slice(0, 80))}`)
  }
  if (/^[A-Za-z0-9%@=:.,/_+-]+$/.test(argument)) return argument
  return `'${argument.replaceAll("'", `'\\''`)}'`
}

/** Joins commands into one line: tmux runs them without anything in between. */
export function commandLine(commands: readonly (readonly string[])[]): string {
  return commands.map((words) => words.map(quoteArgument).join(' ')).join(' ; ')
}

/** For arguments in which tmux expands `#{…}`. */
export function withoutFormats(text: string): string {
  return text.replaceAll('#', '##')
}

/** For arguments in which tmux also expands `%H`. */
export function withoutTimeFormats(text: string): string {
  return withoutFormats(text.replaceAll('%', '%%'))
}

/** Quotes one word of a shell command. Newlines are allowed. */
export function quoteForShell(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`
}

/**
 * Removes control characters: in pasted text they are key presses, and ESC [ 2 0 1 ~ would end the paste.
 * Newlines and tabs stay.
 */
export function withoutControls(text: string): string {
  return text.replace(/\r\n?/g, '\n').replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '')
}
