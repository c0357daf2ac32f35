import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { stripVTControlCharacters } from 'node:util'
import type { Clock } from '../../base/clock.ts'
import { inheritedEnvironment } from '../../runtimes/environment.ts'
import { endProcesses, processStartedAt, SESSION_MARK } from '../../runtimes/processes.ts'

interface CheckOrder {
  /** For the shell. */
  command: string
  cwd: string
  timeoutMs: number
  /** The service's own environment. */
  environment: Readonly<NodeJS.ProcessEnv>
  /** Marks all processes of the check, so all of them can be ended. */
  mark: string
}

export interface CheckRun {
  /** Null if the command was stopped. */
  exitCode: number | null
  output: string
  /** Why the command was stopped, or could not start. */
  stopped: string | undefined
  ms: number
}

const HEAD_BYTES = 2000
const TAIL_BYTES = 4000
/** Between SIGTERM and SIGKILL. */
const GRACE_MS = 1000
const FLUSH_MS = 1000

/** Runs a command in a process group of its own, and resolves when no process of it is left. */
export async function runCheck(order: CheckOrder, clock: Clock, signal: AbortSignal): Promise<CheckRun> {
  const { command, cwd, timeoutMs, environment, mark } = order
  const began = clock.now()
  const took = () => clock.now() - began
  if (signal.aborted) return { exitCode: null, output: '', stopped: 'it was cancelled', ms: 0 }
  const child = spawn('/bin/sh', ['-c', command], {
    cwd,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    // Without any agent's token, because a check acts for no agent.
    env: { ...inheritedEnvironment(environment), TERM: 'dumb', [SESSION_MARK]: mark },
  })
  const output = createBoundedOutput(HEAD_BYTES, TAIL_BYTES)
  child.stdout.on('data', output.push)
  child.stderr.on('data', output.push)
  const closed = once(child, 'close').catch(() => {})
  let stopped: string | undefined
  const { promise: exited, resolve } = Promise.withResolvers<number | null>()
  child.on('exit', (code) => resolve(code))
  child.on('error', (error) => {
    stopped ??= `it could not be run: ${error.message}`
    resolve(null)
  })
  const { pid } = child
  if (pid === undefined) {
    await exited
    return { exitCode: null, output: '', stopped, ms: took() }
  }
  const startedAt = await processStartedAt(pid)
  const leader = startedAt === undefined ? undefined : { pid, startedAt, ownsGroupAfterExit: true }
  const endAll = () => endProcesses({ mark, leader }, GRACE_MS)
  const stop = (why: string) => {
    stopped ??= why
    endAll().catch(() => resolve(null))
  }
  const cancelTimeout = clock.after(timeoutMs, () => stop(`not done after ${timeoutMs / 1000} s`))
  const aborted = () => stop('it was cancelled')
  signal.addEventListener('abort', aborted, { once: true })
  if (signal.aborted) aborted()
  const exitCode = await exited
  cancelTimeout()
  signal.removeEventListener('abort', aborted)
  // A leftover process that cannot be ended doesn't change the result.
  await endAll().catch(() => {})
  await Promise.race([closed, flushed()])
  return { exitCode: stopped === undefined ? exitCode : null, output: output.text(), stopped, ms: took() }
}

/** In real time even under a test clock, because a foreign process may hold the output open. */
function flushed(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, FLUSH_MS).unref())
}

/** Keeps only the beginning and the end of a process's output. */
function createBoundedOutput(headBytes: number, tailBytes: number) {
  let head = Buffer.alloc(0)
  let tail = Buffer.alloc(0)
  let dropped = 0

  return {
    push(piece: Buffer) {
      const room = headBytes - head.length
      if (room > 0) head = Buffer.concat([head, piece.subarray(0, room)])
      if (piece.length <= room) return
      tail = Buffer.concat([tail, piece.subarray(Math.max(0, room))])
      // Trimming only at twice the size avoids a copy for every piece.
      if (tail.length <= 2 * tailBytes) return
      dropped += tail.length - tailBytes
      tail = tail.subarray(-tailBytes)
    },
    text(): string {
      const surplus = Math.max(0, tail.length - tailBytes)
      const left = dropped + surplus
      if (left === 0) return printable(Buffer.concat([head, tail]).toString('utf8'))
      const end = tail
        .subarray(surplus)
        .toString('utf8')
        .replace(/^\ufffd+/, '')
      const begin = head.toString('utf8').replace(/\ufffd+$/, '')
      return `${printable(begin)}\n[… ${left} bytes left out …]\n${printable(end)}`
    },
  }
}

/** Removes control characters, because the text goes to messages, prompts and terminals. */
function printable(text: string): string {
  return stripVTControlCharacters(text)
    .replace(/\r\n?/g, '\n')
    .replace(/[\u0000-\u0008\u000B-\u001F\u007F-\u009F]/g, '')
}
