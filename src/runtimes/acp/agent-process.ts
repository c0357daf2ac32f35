import { type ChildProcess, spawn } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { endProcesses, type GroupLeader, processStartedAt } from '../processes.ts'
import { createOutputTail } from './output-tail.ts'

const STDERR_KEPT = 4096
const STDERR_SHOWN = 400
/** Waits for output written right before the exit, but not for a child that holds the pipe open. */
const LAST_WORDS_MS = 500

interface ProcessOrder {
  readonly file: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly mark: string
}

export interface AgentProcess {
  readonly stdin: Writable
  readonly stdout: Readable
  /** Resolves with how it ended, including its last error output. */
  readonly ended: Promise<string>
  /** The end of its standard error, for evidence: empty, or starting with a colon. */
  complaint(): string
  /** The last lines of its standard error. */
  complaints(count: number): string[]
  /** Ends it with everything it started. Rejects if a process stays. */
  end(graceMs: number): Promise<void>
}

export function startProcess(options: ProcessOrder): AgentProcess {
  const child = spawn(options.file, options.args, {
    cwd: options.cwd,
    env: { ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
    // Own process group: a Ctrl-C meant for the service must not reach it, and its children end with it.
    detached: true,
  })
  const stderr = createOutputTail(STDERR_KEPT)
  child.stderr.setEncoding('utf8').on('data', (text: string) => stderr.add(text))
  // Errors of a pipe to an ended process; the exit tells more.
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on('error', () => {})

  const complaint = () => {
    const text = stderr.lines().join(' ').trim().slice(-STDERR_SHOWN)
    return text === '' ? '' : `: ${text}`
  }
  let isCleared = false
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(`could not be started: ${error.message}`))
    child.once('exit', async (code, signal) => {
      await Promise.race([closed, sleep(LAST_WORDS_MS)])
      resolve(`${signal === null ? `exited with code ${code}` : `was ended by ${signal}`}${complaint()}`)
    })
  })

  return {
    stdin: child.stdin,
    stdout: child.stdout,
    ended,
    complaint,
    complaints: (count) => stderr.lines(count),
    async end(graceMs) {
      // Long after the exit, its pid may belong to another process.
      if (isCleared) return
      child.stdin.end()
      await endProcesses({ mark: options.mark, leader: await leaderOf(child) }, graceMs)
      isCleared = hasEnded(child)
    },
  }
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null
}

async function leaderOf(child: ChildProcess): Promise<GroupLeader | undefined> {
  if (child.pid === undefined) return undefined
  // Until the exit is reported, the pid is still its own.
  const startedAt = hasEnded(child) ? undefined : await processStartedAt(child.pid)
  return { pid: child.pid, startedAt: startedAt ?? 'gone', ownsGroupAfterExit: true }
}
