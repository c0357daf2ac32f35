import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Clock } from '../../base/clock.ts'
import { inheritedEnvironment } from '../../runtimes/environment.ts'
import { endProcesses, processStartedAt, SESSION_MARK } from '../../runtimes/processes.ts'
import { createBoundedOutput } from './bounded-output.ts'

export interface CheckOrder {
  /** For the shell. */
  command: string
  cwd: string
  timeoutMs: number
  /** What the service was started with. */
  environment: Readonly<NodeJS.ProcessEnv>
  /** Of everything that it starts, so that nothing of it is left. */
  mark: string
}

export interface Ran {
  /** Null when it did not end by itself. */
  exitCode: number | null
  output: string
  /** Why it was ended, or could not be run. */
  stopped: string | undefined
  ms: number
}

const HEAD_BYTES = 2000
const TAIL_BYTES = 4000
/** Between asking and killing. */
const GRACE_MS = 1000
const FLUSH_MS = 1000

/** Runs a command in a group of its own. When it resolves, nothing that it started is left. */
export async function runProcess(order: CheckOrder, clock: Clock, signal: AbortSignal): Promise<Ran> {
  const { command, cwd, timeoutMs, environment, mark } = order
  const began = clock.now()
  const took = () => clock.now() - began
  if (signal.aborted) return { exitCode: null, output: '', stopped: 'it was broken off', ms: 0 }
  const child = spawn('/bin/sh', ['-c', command], {
    cwd,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    // A check speaks in nobody's name: no token is among it.
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
  const aborted = () => stop('it was broken off')
  signal.addEventListener('abort', aborted, { once: true })
  if (signal.aborted) aborted()
  const exitCode = await exited
  cancelTimeout()
  signal.removeEventListener('abort', aborted)
  // What cannot be ended does not change what the check has found.
  await endAll().catch(() => {})
  await Promise.race([closed, flushed()])
  return { exitCode: stopped === undefined ? exitCode : null, output: output.text(), stopped, ms: took() }
}

/** Real time: whoever still holds the output open knows no other. */
function flushed(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, FLUSH_MS).unref())
}
