import { type ChildProcess, spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type ClientConnection,
  type ClientContext,
  client,
  methods,
  RequestError,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
} from '@agentclientprotocol/sdk'
import { z } from 'zod'
import { type Clock, sleep as clockSleep, within } from '../../base/clock.ts'
import { reasonOf } from '../../base/errors.ts'
import { createOutputTail } from '../output-tail.ts'
import { endProcesses, type GroupLeader, processStartedAt } from '../processes.ts'
import { openMessageStream } from './message-stream.ts'

const GARBAGE_LOGGED = 3
const GARBAGE_LENGTH = 200

interface AcpConnectionOptions {
  readonly process: AgentProcess
  readonly lineBytes: number
  onUpdate(params: unknown): void
  /** The pipe accepted a complete session/prompt. */
  onPromptWritten(): void
  /** Input that is not ACP: the first few, shortened. */
  onGarbage(what: string): void
  /** While pending, nothing more is read from the agent. */
  hold(): Promise<void> | undefined
  ask(request: RequestPermissionRequest, id: string, signal: AbortSignal): Promise<RequestPermissionResponse>
}

/** Our side of the protocol: we only answer permission requests. */
export function connect(options: AcpConnectionOptions): ClientConnection {
  let garbage = 0
  return client({ name: 'orchub' })
    .onRequest(methods.client.session.requestPermission, ({ params, requestId, signal }) =>
      options.ask(params, String(requestId), signal),
    )
    .connect(
      openMessageStream({
        stdin: options.process.stdin,
        stdout: options.process.stdout,
        lineBytes: options.lineBytes,
        onUpdate: options.onUpdate,
        onWritten(message) {
          if ('method' in message && message.method === methods.agent.session.prompt)
            options.onPromptWritten()
        },
        onGarbage(what) {
          garbage += 1
          if (garbage <= GARBAGE_LOGGED) options.onGarbage(what.slice(0, GARBAGE_LENGTH))
        },
        hold: options.hold,
      }),
    )
}

/** Why the connection broke, unless it was closed normally. */
export function brokenBy(connection: ClientConnection): Error | undefined {
  const { reason } = connection.signal
  // The library's message for an end without a reason.
  return reason instanceof Error && reason.message !== 'ACP connection closed' ? reason : undefined
}

const Injected = z.object({ outcome: z.literal('injected') })

/**
 * Inserts text into the running turn with an ACP extension that some agents have. Resolves with false if that
 * failed.
 */
export async function steer(agent: ClientContext, sessionId: string, text: string): Promise<boolean> {
  try {
    const answer: unknown = await agent.request('_session/steering', {
      sessionId,
      prompt: [{ type: 'text', text }],
      // Otherwise, between turns, it would start a turn unknown to us.
      _meta: { steering: { idleBehavior: 'promptRequired' } },
    })
    return Injected.safeParse(answer).success
  } catch {
    return false
  }
}

/** Rejects if the response does not arrive in time. */
export async function answered<T>(clock: Clock, ms: number, answer: Promise<T>, what: string): Promise<T> {
  const inTime = await within(
    clock,
    ms,
    answer.then((value) => ({ value })),
  )
  if (inTime === undefined) throw new Error(`no answer to ${what} within ${ms / 1000} s`)
  return inTime.value
}

const MINUTE = 60_000

/** Resolves when the minute of that time has passed, plus a second for clock differences. */
export async function minuteIsOver(clock: Clock, time: number): Promise<void> {
  const left = (Math.floor(time / MINUTE) + 1) * MINUTE + 1000 - clock.now()
  // A future time means that the clock was set back; don't wait for it.
  if (left > 0 && left <= MINUTE + 1000) await clockSleep(clock, left)
}

/** ACP's code for a required login. */
const AUTH_REQUIRED = -32000

/** Codes with which an agent certainly rejects a turn: login, unknown session, unreadable request. */
const REFUSALS: ReadonlySet<number> = new Set([AUTH_REQUIRED, -32002, -32600, -32601, -32602, -32700])

/** The agent's error message; adapters hide the reason in `data`. */
export function describeError(error: unknown): string {
  if (error instanceof z.ZodError) {
    const problems = error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`)
    return `its answer is malformed (${problems.join('; ')})`
  }
  if (!(error instanceof RequestError)) return reasonOf(error)
  const details = z.object({ details: z.string() }).safeParse(error.data)
  const reason = typeof error.data === 'string' ? error.data : details.data?.details
  return `${error.message} (${error.code}${reason === undefined ? '' : `: ${reason.slice(0, 300)}`})`
}

export function wantsLogin(error: unknown): boolean {
  return error instanceof RequestError && error.code === AUTH_REQUIRED
}

export function isRefusal(error: unknown): boolean {
  return error instanceof RequestError && REFUSALS.has(error.code)
}

const STDERR_LENGTH = 4096
const STDERR_SHOWN_LENGTH = 400
/** Timeout for output written right before the exit: a child may hold the pipe open. */
const LAST_OUTPUT_MS = 500

interface AgentProcessOptions {
  readonly file: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly mark: string
}

export type AgentProcess = ReturnType<typeof startProcess>

export function startProcess(options: AgentProcessOptions) {
  const child = spawn(options.file, options.args, {
    cwd: options.cwd,
    env: { ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
    // Own process group: a Ctrl-C meant for the service must not reach it, and its children end with it.
    detached: true,
  })
  const stderr = createOutputTail(STDERR_LENGTH)
  child.stderr.setEncoding('utf8').on('data', (text: string) => stderr.add(text))
  // Errors of a pipe to an ended process; its exit says why.
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on('error', () => {})

  const errorSuffix = () => {
    const text = stderr.lines().join(' ').trim().slice(-STDERR_SHOWN_LENGTH)
    return text === '' ? '' : `: ${text}`
  }
  let isCleared = false
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(`could not be started: ${error.message}`))
    child.once('exit', async (code, signal) => {
      await Promise.race([closed, sleep(LAST_OUTPUT_MS)])
      resolve(`${signal === null ? `exited with code ${code}` : `was ended by ${signal}`}${errorSuffix()}`)
    })
  })

  return {
    stdin: child.stdin,
    stdout: child.stdout,
    /** Resolves with how it ended, including its last error output. */
    ended,
    /** The end of its standard error, for evidence: empty, or starting with a colon. */
    errorSuffix,
    /** The last lines of its standard error. */
    errorLines: (count: number) => stderr.lines(count),
    /** Ends it with everything it started. Rejects if a process stays. */
    async end(graceMs: number): Promise<void> {
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
