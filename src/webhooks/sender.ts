import { hash } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import type { WebhookConfig } from '../config/config.ts'
import { bodyOf, type WebhookEvent } from './body.ts'
import { type Posted, post } from './post.ts'
import { signingKey } from './signature.ts'

export interface SenderOptions {
  config: WebhookConfig
  clock: Clock
  redact(text: string): string
  env: Readonly<Record<string, string | undefined>>
  agent: string
  timeoutMs: number
}

/** Makes one attempt, with the address and the secret that are in the environment now. */
export function createSender(options: SenderOptions, closing: AbortSignal) {
  const { config, clock, env, agent, timeoutMs } = options
  const address = () => config.url ?? env[config.urlEnv!] ?? ''

  function keyOf(): Buffer | string | undefined {
    if (config.secretEnv === undefined) return undefined
    const secret = env[config.secretEnv]
    if (secret === undefined || secret === '') return `the variable ${config.secretEnv} is not set`
    return signingKey(secret)
  }

  return {
    /** Tells addresses apart without keeping them. */
    target: () => hash('sha256', address()).slice(0, 16),
    /** For people: an address may be a secret from its path on. */
    shown(): string {
      const url = URL.parse(address())
      return url === null ? `from ${config.urlEnv}, which holds no address` : `${url.origin}/…`
    },
    async send(event: WebhookEvent): Promise<Posted> {
      const url = URL.parse(address())
      if (url === null || !/^https?:$/.test(url.protocol)) {
        return { outcome: 'failed', error: `the variable ${config.urlEnv} holds no address` }
      }
      // Refused here: the error that fetch has for it repeats the whole address.
      if (url.username !== '' || url.password !== '') {
        return { outcome: 'failed', error: 'its address holds a user or a password, which is not sent' }
      }
      const key = keyOf()
      if (typeof key === 'string') return { outcome: 'failed', error: key }
      const body = bodyOf(event, config.format)
      const letter = { url: url.href, id: event.id, body, key, now: clock.now(), agent, timeoutMs }
      const posted = await post(letter, closing)
      return posted.outcome === 'sent' ? posted : { ...posted, error: options.redact(posted.error) }
    },
  }
}
