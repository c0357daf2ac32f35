import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import type { ModelSettings, Models, Provider } from '../../src/llm/llm.ts'
import { createModels } from '../../src/llm/sdk/models.ts'
import { type ModelServer, startModelServer } from '../fakes/model-server/model-server.ts'
import type { Play } from '../fakes/model-server/play.ts'
import { QUIET_LOG } from '../fakes/quiet-log.ts'

/** Each with a model name that it knows, and the path its addresses end with. */
export const PROVIDERS: Record<Provider, { model: string; path: string }> = {
  anthropic: { model: 'claude-sonnet-4-5', path: '/v1' },
  openai: { model: 'gpt-4.1', path: '/v1' },
  google: { model: 'gemini-2.5-flash', path: '/v1beta' },
  'openai-compatible': { model: 'llama', path: '/v1' },
}

export const KEY = 'sk-fake-judge'

/** A clock on which waiting takes no time; it records each wait. */
export function createHasteClock() {
  const waits: number[] = []
  return {
    waits,
    now: () => 1_000_000,
    after(ms: number, callback: () => void) {
      // Timeouts of calls are real, or every call would be late.
      if (ms >= TIMEOUT_MS) return () => {}
      waits.push(ms)
      const timer = setTimeout(callback, 0)
      return () => clearTimeout(timer)
    },
  }
}

export const TIMEOUT_MS = 100_000

export interface Logged {
  fields: Record<string, unknown>
  text: string
}

export function modelsAt(
  url: string,
  over: Partial<ModelSettings> = {},
  options: { env?: Record<string, string>; clock?: ReturnType<typeof createHasteClock> } = {},
): Models & { logged: Logged[]; waits: number[] } {
  const provider = over.provider ?? 'openai-compatible'
  const { model, path } = PROVIDERS[provider]
  const settings: ModelSettings = {
    provider,
    model,
    baseUrl: url + path,
    keyEnv: 'MODEL_KEY',
    timeoutMs: TIMEOUT_MS,
    retries: 2,
    ...over,
  }
  const logged: Logged[] = []
  const log = (fields: Record<string, unknown>, text: string) => void logged.push({ fields, text })
  const clock = options.clock ?? createHasteClock()
  const models = createModels({
    settings: () => ({ fast: settings }),
    clock,
    log: { ...QUIET_LOG, debug: log, warn: log },
    env: options.env ?? { MODEL_KEY: KEY },
  })
  return { ...models, logged, waits: clock.waits }
}

export async function openServer(play: Play): Promise<ModelServer> {
  const server = await startModelServer({ play })
  onTestFinished(() => server.close())
  return server
}

/** An address without a server. */
export async function deadUrl(): Promise<string> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return `http://127.0.0.1:${port}`
}

/** An HTTP server with an arbitrary handler. */
export async function openRawServer(listener: RequestListener): Promise<string> {
  const server = createServer((request, response) => {
    request.resume()
    listener(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
