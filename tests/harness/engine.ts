import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { z } from 'zod'
import { genesisHash, sealWith } from '../../src/audit/chain.ts'
import type { AuditEntry } from '../../src/audit/entry.ts'
import { openRedactor } from '../../src/audit/redact.ts'
import type { Principal } from '../../src/base/agent.ts'
import { AppError } from '../../src/base/errors.ts'
import type { CommandEntry } from '../../src/commands/commands.ts'
import { type ConfigInput, defineConfig } from '../../src/config/config.ts'
import { type Engine, openEngine } from '../../src/engine.ts'
import type { Models } from '../../src/llm/llm.ts'
import { checkMessages } from '../../src/messages/store.ts'
import type { decideCommand } from '../../src/people/api.ts'
import type { HumanVerdict } from '../../src/people/people.ts'
import type { Receipt } from '../../src/protocol/receipt.ts'
import type { Runtime } from '../../src/runtimes/runtime.ts'
import { createScriptedRuntime } from '../../src/runtimes/scripted/runtime.ts'
import type { StoreOptions } from '../../src/store/open-store.ts'
import { openSqliteStore } from '../../src/store/sqlite/open.ts'
import type { Store } from '../../src/store/store.ts'
import { clockedStore } from '../fakes/clocked-store.ts'
import { createSimulatedClock } from '../fakes/simulated-clock.ts'

const redactor = openRedactor()

export const OPERATOR: Principal = { kind: 'operator' }
export const agent = (name: string): Principal => ({ kind: 'agent', agent: name })

/** Sends a command through the door, and returns the details of its receipt or throws its error. */
export async function send<Details = Record<string, unknown>>(
  { handle }: Pick<Engine, 'handle'>,
  principal: Principal,
  type: string,
  fields: Record<string, unknown>,
  idempotencyKey?: string,
): Promise<Details> {
  const receipt = await handle(
    principal,
    { type, fields },
    idempotencyKey === undefined ? {} : { idempotencyKey },
  )
  if (receipt.status === 'ok') return receipt.details as Details
  if (receipt.status !== 'error') throw new Error(JSON.stringify(receipt))
  const { code, message, hint } = receipt
  throw new AppError(code, message, hint === undefined ? {} : { hint })
}

/** A person's verdict on a request. */
export const decide = (
  engine: Pick<Engine, 'handle'>,
  principal: Principal,
  id: string,
  verdict: HumanVerdict,
): Promise<z.output<typeof decideCommand.details>> => send(engine, principal, 'decide', { id, ...verdict })

export type TestEngine = Awaited<ReturnType<typeof openTestEngine>>

/** A whole engine on a real SQLite file, or another store, under a simulated clock. */
export async function openTestEngine(
  input: Omit<ConfigInput, 'store' | 'service'>,
  options: {
    commands?: CommandEntry[]
    runtimes?: Runtime[]
    models?: Models
    autostart?: boolean
    /** Secrets of webhooks, and how long their receivers may take. */
    env?: Record<string, string>
    webhookTimeoutMs?: number
    folder?: string
    clock?: ReturnType<typeof createSimulatedClock>
    openStore?: (options: StoreOptions) => Promise<Store>
  } = {},
) {
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'orchub-engine-'))
  const clock = options.clock ?? createSimulatedClock()
  const config = defineConfig(input, { file: join(folder, 'orc.yaml'), env: {} })
  const { openStore = (more: StoreOptions) => openSqliteStore(join(folder, 'orc.db'), more) } = options
  const opened = await openStore({
    identity: { daemon: 'main', address: '', pid: process.pid, host: 'here', leaseMs: 3600_000 },
    seal: sealWith(await redactor),
    genesis: genesisHash,
    now: clock.now,
    checkRows: checkMessages,
  })
  const store = clockedStore(opened, clock)
  const entries: AuditEntry[] = []
  store.onCommit((committed) => void entries.push(...committed))
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  const runtimes = options.runtimes ?? [createScriptedRuntime({ after: clock.after })]
  const engine: Engine = await openEngine({
    config,
    store,
    clock,
    log,
    redact: (await redactor).redact,
    runtimes,
    ...(options.models === undefined ? {} : { models: options.models }),
    ...(options.autostart === undefined ? {} : { autostart: options.autostart }),
    ...(options.env === undefined ? {} : { env: options.env }),
    ...(options.webhookTimeoutMs === undefined ? {} : { webhookTimeoutMs: options.webhookTimeoutMs }),
    ...(options.commands === undefined ? {} : { commands: options.commands }),
  })
  await engine.begin('http://127.0.0.1:1')
  return {
    ...engine,
    engine,
    clock,
    folder,
    entries,
    /** One command of an agent, by its name. */
    say: (name: string, type: string, fields: Record<string, unknown> = {}): Promise<Receipt> =>
      engine.handle(agent(name), { type, fields }),
    order: (type: string, fields: Record<string, unknown> = {}): Promise<Receipt> =>
      engine.handle(OPERATOR, { type, fields }),
    types: () => entries.map((entry) => entry.type),
    async mailOf(name: string, filter = 'all') {
      const receipt = await engine.handle(OPERATOR, {
        type: 'query_mailbox',
        fields: { agent: name, filter },
      })
      if (receipt.status !== 'ok') throw new Error(JSON.stringify(receipt))
      return receipt.details!.messages as {
        id: string
        from: string
        title: string
        content: string
        delivery: string
      }[]
    },
    /** A crash as the next start sees it: everything in memory is gone, the file stays. */
    async reopen(next = input, awayMs = 0) {
      await engine.close('leave')
      await clock.advance(awayMs)
      return openTestEngine(next, { ...options, folder, clock })
    },
    async close() {
      await engine.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
