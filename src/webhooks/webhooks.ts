import type { Clock } from '../base/clock.ts'
import { AppError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { Team } from '../commands/team.ts'
import type { Store } from '../store/store.ts'
import type { WebhookState } from './api.ts'
import { createEndpoint, type Endpoint } from './endpoint.ts'
import type { Posted } from './send.ts'
import { forgetWebhook, readWebhooks } from './store.ts'

/** Posts audit entries to chat tools and other receivers. Each receiver has its own durable queue. */
export interface Webhooks {
  /** Sends waiting events, then new ones. */
  begin(): Promise<void>
  /** Applies a reloaded configuration. */
  follow(): Promise<void>
  list(): Promise<WebhookState[]>
  test(name: string): Promise<Posted>
  close(): Promise<void>
}

interface WebhooksOptions {
  store: Store
  clock: Clock
  log: Log
  redact(text: string): string
  team(): Team
  /** The environment with the secrets. */
  env?: Readonly<Record<string, string | undefined>>
  timeoutMs?: number
}

const TIMEOUT_MS = 15_000

export function createWebhooks(options: WebhooksOptions): Webhooks {
  const { store, team } = options
  let endpoints = new Map<string, Endpoint>()
  let begun = false

  async function open() {
    const rows = await readWebhooks(store, store.daemon)
    const configs = team().config.webhooks
    const opened = configs.map((config) =>
      createEndpoint({
        env: process.env,
        timeoutMs: TIMEOUT_MS,
        ...options,
        config,
        row: rows.find(({ name }) => name === config.name),
      }),
    )
    const gone = rows.filter(({ name }) => !configs.some((config) => config.name === name))
    if (gone.length > 0) {
      await store.write(async (tx) => {
        for (const { name } of gone) await forgetWebhook(tx, store.daemon, name)
      })
    }
    endpoints = new Map(opened.map((endpoint) => [endpoint.name, endpoint]))
    for (const endpoint of opened) {
      await endpoint.open()
      endpoint.kick()
    }
  }

  const stopListening = store.onCommit((entries) => {
    for (const endpoint of endpoints.values()) endpoint.onCommit(entries)
  })

  async function closeAll() {
    const closing = [...endpoints.values()]
    endpoints = new Map()
    await Promise.all(closing.map((endpoint) => endpoint.close()))
  }

  return {
    async begin() {
      begun = true
      await open()
    },
    async follow() {
      if (!begun) return
      await closeAll()
      await open()
    },
    list: () => Promise.all([...endpoints.values()].map(stateOf)),
    async test(name) {
      const endpoint = endpoints.get(name)
      if (endpoint !== undefined) return await endpoint.test()
      const known = [...endpoints.keys()]
      throw new AppError('NOT_FOUND', `orc.yaml has no webhook ${name.slice(0, 64)}`, {
        hint: known.length === 0 ? 'orc.yaml has no webhooks.' : `Known webhooks: ${known.join(', ')}.`,
      })
    },
    async close() {
      stopListening()
      await closeAll()
    },
  }
}

async function stateOf(endpoint: Endpoint): Promise<WebhookState> {
  const { name, config } = endpoint
  const { state, failures, sent, dropped, sent_at, failing_since, not_before, last_error } = endpoint.row()
  return {
    name,
    url: endpoint.shown(),
    format: config.format,
    events: [...config.events],
    state: state === 'dead' ? 'dead' : failures > 0 ? 'failing' : 'active',
    pending: await endpoint.pending(),
    sent,
    dropped,
    sent_at: iso(sent_at),
    failing_since: iso(failing_since),
    next_attempt_at: iso(not_before),
    last_error: last_error ?? undefined,
  }
}

const iso = (at: number | null) => (at === null ? undefined : new Date(at).toISOString())
