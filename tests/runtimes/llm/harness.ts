import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { ModelSettings } from '../../../src/llm/llm.ts'
import { createModels } from '../../../src/llm/sdk/models.ts'
import type { RawCommand } from '../../../src/protocol/command.ts'
import type { Receipt } from '../../../src/protocol/receipt.ts'
import { createLlmRuntime } from '../../../src/runtimes/llm/runtime.ts'
import type { LlmLimits } from '../../../src/runtimes/llm/session.ts'
import type { AgentStart, Session } from '../../../src/runtimes/runtime.ts'
import { type ModelServer, startModelServer } from '../../fakes/model-server/model-server.ts'
import type { Play } from '../../fakes/model-server/play.ts'
import { QUIET_LOG } from '../../fakes/quiet-log.ts'
import { REAL_CLOCK } from '../../fakes/real-clock.ts'
import { createRecordingPort, type RecordingPort } from '../../fakes/recording-port.ts'
import { modelAt, TOOLS, type Wire } from './test-model.ts'

/** A door that executes each key once and records every call. */
export function createDoor(answer: (said: RawCommand) => Receipt | Promise<Receipt> = () => DONE) {
  const asked: { said: RawCommand; key: string }[] = []
  const receipts = new Map<string, Promise<Receipt>>()
  return {
    asked,
    /** Number of executed commands. */
    get effects() {
      return receipts.size
    },
    async command(said: RawCommand, key: string) {
      asked.push({ said, key })
      const receipt = receipts.get(key) ?? Promise.resolve(answer(said))
      receipts.set(key, receipt)
      const { details } = (await receipt) as { details?: { messages?: { id: string }[] } }
      return { receipt: await receipt, handedOut: (details?.messages ?? []).map(({ id }) => id) }
    },
  }
}

const DONE: Receipt = { status: 'ok', result: 'Command executed' }

export interface Fixture {
  readonly server: ModelServer
  readonly folder: string
  readonly door: ReturnType<typeof createDoor>
  readonly port: RecordingPort
  /** The lines of the conversation. */
  lines(): Record<string, unknown>[]
  file(): string
  start(over?: Partial<AgentStart>, port?: RecordingPort): Promise<Session>
}

/** An agent of the runtime llm before a scripted model, for one test. */
export async function openFixture(
  play: Play,
  options: {
    wire?: Wire
    settings?: Record<string, unknown>
    model?: Partial<ModelSettings>
    limits?: Partial<LlmLimits>
    door?: ReturnType<typeof createDoor>
    env?: Record<string, string>
  } = {},
): Promise<Fixture> {
  const server = await startModelServer({ play })
  const folder = mkdtempSync(join(tmpdir(), 'orc-llm-'))
  const door = options.door ?? createDoor()
  const port = createRecordingPort()
  const sessions: Session[] = []
  onTestFinished(async () => {
    await Promise.all(sessions.map((session) => session.stop()))
    await server.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const settings = { m: modelAt(server.url, options.wire ?? 'openai-compatible', options.model) }
  const env = options.env ?? { MODEL_KEY: 'sk-fake-coder' }
  const models = createModels({ settings: () => settings, clock: REAL_CLOCK, log: QUIET_LOG, env })
  const limits = { failureMs: 50, maxFailureMs: 200, interruptMs: 5000, ...options.limits }
  const runtime = createLlmRuntime({
    models,
    commands: () => TOOLS,
    clock: REAL_CLOCK,
    log: QUIET_LOG,
    limits,
  })
  const agent = {
    name: 'coder',
    program: undefined,
    settings: { model: 'm', ...options.settings },
    prompt: 'You write code.',
    cwd: folder,
    folder: join(folder, 'private'),
    savedState: undefined,
    nonce: 'n1',
    credentials: () => Promise.reject(new Error('not asked for')),
    command: door.command,
  }
  const file = () => join(agent.folder, readdirSync(agent.folder)[0]!)
  return {
    server,
    folder,
    door,
    port,
    file,
    lines: () =>
      readFileSync(file(), 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    async start(over = {}, to = port) {
      const session = await runtime.start({ ...agent, ...over }, to)
      sessions.push(session)
      return session
    },
  }
}
