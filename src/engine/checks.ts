import { spawn } from 'node:child_process'
import type { Clock } from './surroundings.ts'

export interface Check {
  name: string
  /** For the shell: from orc.yaml, or of an agent that has the permission. */
  command: string
  timeoutMs: number
}

export interface CheckResult {
  name: string
  passed: boolean
  /** Undefined when it did not end by itself. */
  exitCode: number | undefined
  /** The end of what it printed. */
  tail: string
  why: string
}

/** Of the output of one check: its end tells most. */
const TAIL_BYTES = 4000

/** Runs one check in the worker's folder. What it started ends with it. */
export async function runCheck(
  check: Check,
  cwd: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<CheckResult> {
  const { exitCode, tail, stopped } = await run(check.command, cwd, check.timeoutMs, clock, signal)
  const why = stopped ?? (exitCode === 0 ? 'exit code 0' : `exit code ${exitCode ?? 'unknown'}`)
  return { name: check.name, passed: stopped === undefined && exitCode === 0, exitCode, tail, why }
}

/** The commit that the checks looked at, where there is one. */
export async function commitOf(cwd: string, clock: Clock, signal: AbortSignal): Promise<string | undefined> {
  const { exitCode, tail } = await run('git rev-parse HEAD', cwd, 10_000, clock, signal)
  return exitCode === 0 ? tail.trim() : undefined
}

/** For the record and the judge. */
export function evidenceOf(results: readonly CheckResult[], commit: string | undefined): string {
  const parts = results.map(({ name, passed, why, tail }) => {
    const output = tail.trim() === '' ? '' : `\n${tail.trim()}`
    return `${name} ${passed ? 'passed' : 'failed'} (${why})${output}`
  })
  return [...(commit === undefined ? [] : [`at commit ${commit}`]), ...parts].join('\n')
}

interface Ran {
  exitCode: number | undefined
  tail: string
  /** Why it was ended. */
  stopped: string | undefined
}

function run(
  command: string,
  cwd: string,
  timeoutMs: number,
  clock: Clock,
  signal: AbortSignal,
): Promise<Ran> {
  return new Promise((resolve) => {
    // A group of its own, so that what it starts can be ended with it.
    const child = spawn('/bin/sh', ['-c', command], {
      cwd,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: environment(),
    })
    let output = Buffer.alloc(0)
    let stopped: string | undefined
    const take = (piece: Buffer) => {
      output = Buffer.concat([output, piece])
      if (output.length > 2 * TAIL_BYTES) output = output.subarray(-TAIL_BYTES)
    }
    child.stdout.on('data', take)
    child.stderr.on('data', take)
    const stop = (why: string) => {
      stopped ??= why
      endGroup(child.pid)
    }
    const cancelTimeout = clock.after(timeoutMs, () => stop(`not done after ${timeoutMs / 1000} s`))
    const aborted = () => stop('the service ended')
    signal.addEventListener('abort', aborted, { once: true })
    const finish = (exitCode: number | undefined, failure?: string) => {
      cancelTimeout()
      signal.removeEventListener('abort', aborted)
      // Whatever it left running in its group.
      endGroup(child.pid)
      const tail = output.subarray(-TAIL_BYTES).toString('utf8')
      resolve({ exitCode, tail, stopped: stopped ?? failure })
    }
    child.on('error', (error) => finish(undefined, `it could not be run: ${error.message}`))
    // Not `close`: a process left in the background may hold the output open.
    child.on('exit', (code) => setImmediate(finish, code ?? undefined))
    if (signal.aborted) aborted()
  })
}

function endGroup(pid: number | undefined) {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // Nothing of it is left.
  }
}

/** A check speaks in nobody's name. */
function environment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('ORC_')))
}

const DECLARED = 'sh: '

/** A check that is a command itself stands among the names with a mark that no name can have. */
export function declaredCheck(command: string): string {
  return `${DECLARED}${command}`
}

/** The command of such a check. */
export function declaredCommand(check: string): string | undefined {
  return check.startsWith(DECLARED) ? check.slice(DECLARED.length) : undefined
}
