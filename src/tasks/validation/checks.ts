/** Checks: shell commands that must succeed before a claim is accepted. Runs use them too. */
import { spawn } from 'node:child_process'
import { hash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { stripVTControlCharacters } from 'node:util'
import type { Clock } from '../../base/clock.ts'
import { createKeyedLimiter } from '../../base/keyed-limiter.ts'
import type { Log } from '../../base/log.ts'
import type { Team } from '../../commands/team.ts'
import type { Config } from '../../config/config.ts'
import { inheritedEnvironment } from '../../runtimes/environment.ts'
import { endProcesses, processStartedAt, readProcesses, SESSION_MARK } from '../../runtimes/processes.ts'
import type { Store } from '../../store/store.ts'
import type { TaskEvent } from '../core/events-and-effects.ts'
import { findTask } from '../store.ts'
import type { CheckResult, Findings } from '../task.ts'

export interface Check {
  name: string
  /** A shell command from orc.yaml, or of a delegator with the permission. */
  command: string
  timeoutMs: number
}

/** Marks a command among check names; no name can contain it. */
const DECLARED_PREFIX = 'sh: '
const DECLARED_CHECK_MS = 5 * 60_000

/** A check that the delegator declared as a command. */
export function declaredCheck(command: string): string {
  return `${DECLARED_PREFIX}${command}`
}

/** Undefined if orc.yaml no longer has a check of that name. */
function findCheck({ tasks }: Config, check: string): Check | undefined {
  if (check.startsWith(DECLARED_PREFIX)) {
    const command = check.slice(DECLARED_PREFIX.length)
    return { name: command, command, timeoutMs: DECLARED_CHECK_MS }
  }
  return Object.hasOwn(tasks.checks, check) ? { name: check, ...tasks.checks[check]! } : undefined
}

/** The sum of their timeouts, because they run one after the other. */
export function longestRun(config: Config, checks: readonly string[]): number {
  return checks.reduce((sum, check) => sum + (findCheck(config, check)?.timeoutMs ?? 0), 0)
}

/** Store this many characters of a passed check's output. */
const PASSED_OUTPUT = 1000

export function resultOf(name: string, { exitCode, output, stopped, ms }: CheckRun): CheckResult {
  const passed = stopped === undefined && exitCode === 0
  const why = stopped ?? `exit code ${exitCode ?? 'unknown: a signal ended it'}`
  const shown = passed && output.length > PASSED_OUTPUT ? `…${output.slice(-PASSED_OUTPUT)}` : output
  return { name, passed, exitCode, why, output: shown.toWellFormed(), ms }
}

/** For the worker, the judge and people. */
export function findingsText({ checks, commit, dirty }: Findings): string {
  const version = commit === undefined ? [] : [`at commit ${commit}${dirty ? ', not all committed' : ''}`]
  return [...version, ...checks.map(resultText)].join('\n')
}

function resultText({ name, passed, why, output }: CheckResult): string {
  const printed = output.trim() === '' ? '' : `\n${output.trim()}`
  return `${name} ${passed ? 'passed' : 'failed'} (${why})${printed}`
}

interface CheckRunnerOptions {
  store: Store
  clock: Clock
  log: Log
  team(): Team
  environment: Readonly<NodeJS.ProcessEnv>
}

interface ClaimChecks {
  task: string
  claim: number
  checks: readonly string[]
}

const GIT_MS = 10_000

/** Runs the checks of claims in the folders of their workers, one claim per folder at a time. */
export function createCheckRunner({ store, clock, log, team, environment }: CheckRunnerOptions) {
  // More test suites in parallel would slow each other down.
  const limiter = createKeyedLimiter(Math.max(1, Math.floor(availableParallelism() / 2)))
  const prefix = `check-${hash('sha256', team().config.stateFolder).slice(0, 12)}-`
  let leftoversEnded: Promise<void> | undefined

  /** A mark per run, so ending a cancelled run doesn't touch the next one. */
  const newMark = () => `${prefix}${randomBytes(6).toString('hex')}`

  const run = (check: Omit<Check, 'name'>, cwd: string, signal: AbortSignal) =>
    runCheck({ ...check, cwd, environment, mark: newMark() }, clock, signal)

  /** Ends checks that a killed service left running, because the same checks will run again in the same folders. */
  async function endLeftovers() {
    const marks = new Set((await readProcesses()).map(({ mark }) => mark))
    for (const mark of marks) {
      if (mark?.startsWith(prefix)) await endProcesses({ mark })
    }
  }

  /** `begin` is called when the checks leave the queue, and returns whether the claim still waits for them. */
  async function check(
    { task: id, claim, checks: names }: ClaimChecks,
    begin: () => Promise<boolean>,
    signal: AbortSignal,
  ): Promise<TaskEvent | undefined> {
    await leftoversEnded
    const task = await findTask(store, id)
    const folder = team().config.agents.find(({ name }) => name === task?.agent)?.folder
    if (folder === undefined) {
      return { type: 'validation_gave_up', claim, why: 'its worker is no longer in the team' }
    }
    return await limiter.run(folder, async () => {
      if (!(await begin())) return undefined
      const version = await versionOf(folder, signal)
      const checks: CheckResult[] = []
      for (const name of names) {
        const known = findCheck(team().config, name)
        if (known === undefined) {
          return { type: 'validation_gave_up', claim, why: `orc.yaml no longer has a check "${name}"` }
        }
        checks.push(resultOf(known.name, await run(known, folder, signal)))
        if (!checks.at(-1)!.passed) break
      }
      const findings: Findings = { checks, ...version }
      const type = checks.every(({ passed }) => passed) ? 'checks_passed' : 'checks_failed'
      return { type, claim, evidence: findingsText(findings), findings }
    })
  }

  /** The checked commit, if the folder is a git repository. */
  async function versionOf(folder: string, signal: AbortSignal): Promise<Pick<Findings, 'commit' | 'dirty'>> {
    const git = (words: string) => ({ command: `git --no-optional-locks ${words}`, timeoutMs: GIT_MS })
    const head = await run(git('rev-parse HEAD'), folder, signal)
    if (head.exitCode !== 0) return {}
    const status = await run(git('status --porcelain | head -c 1'), folder, signal)
    const isKnown = status.exitCode === 0
    return { commit: head.output.trim(), ...(isKnown && { dirty: status.output.trim() !== '' }) }
  }

  return {
    check,
    /** Called before the first check. */
    begin() {
      leftoversEnded = endLeftovers().catch((error: unknown) =>
        log.error({ err: error }, 'checks of an earlier start could not be ended'),
      )
    },
  }
}

export type CheckRunner = ReturnType<typeof createCheckRunner>

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

interface CheckRun {
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

/** Runs a command in its own process group, and resolves when all its processes have ended. */
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
