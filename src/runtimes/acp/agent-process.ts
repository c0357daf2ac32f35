import { type ChildProcess, spawn } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { processStartedAt } from '../process-table.ts'
import { endProcesses, type GroupLeader } from '../processes.ts'
import { createTail } from './tail.ts'

const STDERR_KEPT = 4096
const STDERR_SHOWN = 400
/** What the program wrote right before its end is still on its way; a child that holds the pipe open is not waited for. */
const LAST_WORDS_MS = 500

export interface ProcessOrder {
  readonly file: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly mark: string
}

export interface AgentProcess {
  readonly stdin: Writable
  readonly stdout: Readable
  /** Resolves with how it ended, its last words included. */
  readonly ended: Promise<string>
  /** The end of what it complained of, for evidence: empty, or beginning with a colon. */
  complaint(): string
  /** The end of its standard error, line by line. */
  complaints(count: number): string[]
  /** Ends it with all it started. Rejects if something would not go. */
  end(graceMs: number): Promise<void>
}

export function startProcess(order: ProcessOrder): AgentProcess {
  const child = spawn(order.file, order.args, {
    cwd: order.cwd,
    env: { ...order.env },
    stdio: ['pipe', 'pipe', 'pipe'],
    // A group of its own: a Ctrl-C meant for the service must not hit it, and its children end with it.
    detached: true,
  })
  const stderr = createTail(STDERR_KEPT)
  child.stderr.setEncoding('utf8').on('data', (text: string) => stderr.add(text))
  // A pipe to a process that is gone: the exit tells it better.
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
      // Long after its end its pid may be another's.
      if (isCleared) return
      child.stdin.end()
      await endProcesses({ mark: order.mark, leader: await leaderOf(child) }, graceMs)
      isCleared = hasEnded(child)
    },
  }
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null
}

async function leaderOf(child: ChildProcess): Promise<GroupLeader | undefined> {
  if (child.pid === undefined) return undefined
  // Until we are told of its end, its pid is its own.
  const startedAt = hasEnded(child) ? undefined : await processStartedAt(child.pid)
  return { pid: child.pid, startedAt: startedAt ?? 'gone', ownsGroupAfterExit: true }
}
