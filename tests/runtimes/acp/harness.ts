import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import type { SessionState } from '../../../src/base/agent.ts'
import { createAcpRuntime } from '../../../src/runtimes/acp/runtime.ts'
import type { AcpLimits } from '../../../src/runtimes/acp/settings.ts'
import type {
  PermissionQuestion,
  PermissionVerdict,
  Session,
  SessionPort,
  Turn,
  Usage,
} from '../../../src/runtimes/runtime.ts'
import { QUIET_LOG } from '../../fakes/quiet-log.ts'
import { createRecorder, type Recorder } from '../recorder.ts'

const FAKE = fileURLToPath(new URL('../../fakes/acp-agent.ts', import.meta.url))

/** Settings that run the fake agent, which keeps what it does in that folder. */
export function fakeAgent(folder: string, flags: readonly string[] = []) {
  return {
    command: process.execPath,
    args: [FAKE, ...flags],
    env: { FAKE_ACP_STORE: join(folder, 'store.json'), FAKE_ACP_LOG: join(folder, 'log.jsonl') },
  }
}

export interface Fixture {
  readonly folder: string
  /** The fake agent's records of that kind, in order. */
  record<T>(what: string): T[]
}

/** A folder in which fake agents keep their conversations, for one test. */
export function openFixture(): Fixture {
  const folder = mkdtempSync(join(tmpdir(), 'orc-acp-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return {
    folder,
    record: (what) => recordedIn(folder, what),
  }
}

/** The records of that kind by the fake agents in that folder. */
export function recordedIn<T>(folder: string, what: string): T[] {
  const file = join(folder, 'log.jsonl')
  if (!existsSync(file)) return []
  const entries = readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  return entries.flatMap((entry) => (entry.what === what ? [entry.value] : []))
}

export const clock = {
  now: () => Date.now(),
  after(ms: number, callback: () => void) {
    const timer = setTimeout(callback, ms)
    return () => clearTimeout(timer)
  },
}

export interface Heard {
  readonly said: string[]
  readonly states: Recorder['states']
  readonly arrived: Recorder['arrivals']
  readonly asked: {
    question: PermissionQuestion
    answer(verdict?: PermissionVerdict): void
    gone: AbortSignal
  }[]
  readonly used: Usage[]
  readonly recorder: Recorder
  /** Resolves when it holds; each event is looked at. */
  until(holds: () => boolean, what: string): Promise<void>
}

/** `hear`: how the engine takes what was said. */
function listen(hear: (text: string) => Promise<void>): Heard & { port: SessionPort } {
  const recorder = createRecorder()
  const said: string[] = []
  const asked: Heard['asked'] = []
  const port: SessionPort = {
    ...recorder,
    async onText(utterance) {
      said.push(utterance.text)
      await recorder.onText(utterance)
      await hear(utterance.text)
    },
    askPermission: (question, gone) =>
      new Promise((answer) => {
        gone.addEventListener('abort', () => answer(undefined))
        asked.push({ question, answer, gone })
      }),
  }
  const until = (holds: () => boolean, what: string) => recorder.until(what, holds)
  return {
    said,
    states: recorder.states,
    arrived: recorder.arrivals,
    asked,
    used: recorder.usages,
    recorder,
    until,
    port,
  }
}

export interface StartOptions {
  fixture?: Fixture
  flags?: readonly string[]
  savedState?: unknown
  program?: string
  settings?: Record<string, unknown>
  limits?: Partial<AcpLimits>
  environment?: NodeJS.ProcessEnv
  cwd?: string
  /** How long the engine takes over what was said. */
  hear?: (text: string) => Promise<void>
}

export interface Started extends Heard {
  readonly session: Session
  readonly fixture: Fixture
  readonly warnings: string[]
  /** Resolves with the evidence once the agent is in that state, from now on or already. */
  reaches(state: SessionState): Promise<string>
}

export async function start(options: StartOptions = {}): Promise<Started> {
  const fixture = options.fixture ?? openFixture()
  const { port, ...heard } = listen(options.hear ?? (async () => {}))
  const warnings: string[] = []
  const runtime = createAcpRuntime({
    clock,
    log: { ...QUIET_LOG, warn: (_, text) => void warnings.push(text) },
    bin: '/opt/orc/bin/orc',
    environment: options.environment ?? process.env,
    limits: { graceMs: 1000, quietMs: 100, failureMs: 60_000, ...options.limits },
  })
  const session = await runtime.start(
    {
      name: 'coder',
      program: options.program ?? 'any',
      settings: { ...fakeAgent(fixture.folder, options.flags), ...options.settings },
      prompt: 'You write code.',
      cwd: options.cwd ?? fixture.folder,
      folder: join(fixture.folder, 'private'),
      savedState: options.savedState,
      nonce: 'n1',
      credentials: async () => ({ url: 'http://127.0.0.1:7420', token: 'orc_secret' }),
    },
    port,
  )
  onTestFinished(() => session.stop())
  return {
    ...heard,
    warnings,
    session,
    fixture,
    async reaches(state) {
      await heard.until(() => session.state === state, `state ${state}`)
      return heard.states.findLast((change) => change.state === state)?.evidence ?? ''
    },
  }
}

/** The fake agent, ready for a turn. */
export async function startIdle(options: StartOptions = {}): Promise<Started> {
  const started = await start(options)
  await started.reaches('idle')
  return started
}

/** A turn of messages; the lines are what the fake agent does. */
export function turn(lines: string, ...ids: string[]): Turn {
  const text = ids.reduce(
    (inner, id) => `[ORCHUB MESSAGE ${id}]\n${inner}\n[END ORCHUB MESSAGE ${id}]`,
    lines,
  )
  return { text, ids }
}

export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return !/^\d+ \(.*\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}
