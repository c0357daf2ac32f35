import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import type { SessionState } from '../../../src/base/agent.ts'
import { createAcpRuntime } from '../../../src/runtimes/acp/runtime.ts'
import type { AcpLimits } from '../../../src/runtimes/acp/settings.ts'
import type { Session, Turn } from '../../../src/runtimes/runtime.ts'
import { QUIET_LOG } from '../../fakes/quiet-log.ts'
import { REAL_CLOCK } from '../../fakes/real-clock.ts'
import { createRecordingPort, type RecordingPort } from '../../fakes/recording-port.ts'

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

export interface StartOptions {
  fixture?: Fixture
  flags?: readonly string[]
  savedState?: unknown
  program?: string
  settings?: Record<string, unknown>
  limits?: Partial<AcpLimits>
  environment?: NodeJS.ProcessEnv
  cwd?: string
  /** Delays the processing of the agent's text. */
  hear?: (text: string) => Promise<void>
}

export interface Started extends Pick<RecordingPort, 'states' | 'arrived' | 'asked' | 'used' | 'until'> {
  readonly said: string[]
  readonly port: RecordingPort
  readonly session: Session
  readonly fixture: Fixture
  readonly warnings: string[]
  /** Resolves with the evidence once the agent is in that state, from now on or already. */
  reaches(state: SessionState): Promise<string>
}

export async function start(options: StartOptions = {}): Promise<Started> {
  const fixture = options.fixture ?? openFixture()
  const said: string[] = []
  const port = createRecordingPort()
  const { onText, states, arrived, asked, used, until } = port
  port.onText = async (agentText) => {
    said.push(agentText.text)
    await onText(agentText)
    await options.hear?.(agentText.text)
  }
  const warnings: string[] = []
  const runtime = createAcpRuntime({
    clock: REAL_CLOCK,
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
    ...{ said, port, states, arrived, asked, used, until },
    warnings,
    session,
    fixture,
    async reaches(state) {
      await until(() => session.state === state)
      return states.findLast((change) => change.state === state)?.evidence ?? ''
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
