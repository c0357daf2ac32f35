import type { SessionPort } from '../../runtimes/runtime.ts'
import type { MessageInfo } from './records.ts'
import type { Server } from './server.ts'

/** Tells what each answer cost, and how full the context of the agent's own conversation is (C26). */
export function createSpending(port: Pick<SessionPort, 'used'>, server: Server) {
  let windows: Promise<ReadonlyMap<string, number>> | undefined
  let last = ''

  async function windowOf(model: string): Promise<number | undefined> {
    windows ??= readWindows(server)
    try {
      const known = (await windows).get(model)
      // A model that was set up meanwhile.
      if (known === undefined) windows = undefined
      return known
    } catch {
      windows = undefined
      return undefined
    }
  }

  return async (info: MessageInfo, isOwn: boolean): Promise<void> => {
    const { id, tokens, time } = info
    if (tokens === undefined || time.completed === undefined || id === last) return
    last = id
    const { input, cache } = tokens
    const model = `${info.providerID ?? ''}/${info.modelID ?? ''}`
    const contextTokens = input + cache.read + cache.write
    // An interrupted answer has no figures.
    if (contextTokens === 0) return
    const output = tokens.output + tokens.reasoning
    const spent = { key: id, input, output, cacheRead: cache.read, cacheWrite: cache.write }
    const window = isOwn ? await windowOf(model) : undefined
    port.used({
      model,
      spent,
      ...(isOwn ? { contextTokens } : {}),
      ...(window === undefined ? {} : { contextWindow: window }),
    })
  }
}

async function readWindows(server: Server): Promise<ReadonlyMap<string, number>> {
  const { providers } = await server.providers()
  return new Map(
    providers.flatMap(({ id, models }) =>
      Object.entries(models).flatMap(([model, { limit }]) =>
        limit === undefined ? [] : [[`${id}/${model}`, limit.context] as const],
      ),
    ),
  )
}
