import { createHmac, hash } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import type { WebhookConfig } from '../config/config.ts'
import { bodyOf, type WebhookEvent } from './event.ts'

export interface SenderOptions {
  config: WebhookConfig
  clock: Clock
  redact(text: string): string
  env: Readonly<Record<string, string | undefined>>
  timeoutMs: number
}

/** `rejected`: the receiver refuses this event. `gone`: it refuses all events. `failed`: try again later. */
export type Posted =
  | { outcome: 'sent'; status: number }
  | {
      outcome: 'failed' | 'rejected' | 'gone'
      error: string
      status?: number
      retryAfterMs?: number | undefined
    }

/** Bytes of the receiver's response in the error. */
const MAX_SHOWN = 200

/** Sends one event. Reads the address and the secret from the environment for each attempt. */
export function createSender(options: SenderOptions, closing: AbortSignal) {
  const { config, clock, env, redact, timeoutMs } = options
  const address = () => config.url ?? env[config.urlEnv!] ?? ''

  /** Posts once without following redirects: the signature is for this address only. */
  async function post(url: URL, key: Buffer | undefined, event: WebhookEvent): Promise<Posted> {
    const body = bodyOf(event, config.format)
    const now = clock.now()
    const seconds = Math.floor(now / 1000)
    // Standard Webhooks: the id, the time of this attempt and the exact bytes of the body.
    const signed = `${event.id}.${seconds}.${body}`
    try {
      const response = await fetch(url, {
        method: 'POST',
        redirect: 'manual',
        headers: {
          'content-type': 'application/json',
          'user-agent': 'Orchub-Webhooks',
          'webhook-id': event.id,
          'webhook-timestamp': String(seconds),
          ...(key && {
            'webhook-signature': `v1,${createHmac('sha256', key).update(signed).digest('base64')}`,
          }),
        },
        body,
        signal: AbortSignal.any([closing, AbortSignal.timeout(timeoutMs)]),
      })
      const { status } = response
      if (response.ok) {
        // The body of a success doesn't matter.
        response.body?.cancel().catch(() => {})
        return { outcome: 'sent', status }
      }
      const text = await beginningOf(response)
      const redirect = status >= 300 && status < 400 ? ': a redirect, which is not followed' : ''
      return {
        outcome: OUTCOMES[status] ?? 'failed',
        status,
        error: redact(`${status}${redirect}${text === '' ? '' : `: ${text}`}`),
        retryAfterMs: retryAfter(response.headers.get('retry-after'), now),
      }
    } catch (error) {
      return failed(redact(reasonOf(error, timeoutMs)))
    }
  }

  return {
    /** A hash of the address, which may be secret. */
    target: () => hash('sha256', address()).slice(0, 16),
    /** The address without its path, which may be secret. */
    shown(): string {
      const url = URL.parse(address())
      return url === null ? `from ${config.urlEnv}, which contains no valid URL` : `${url.origin}/…`
    },
    async send(event: WebhookEvent): Promise<Posted> {
      const url = URL.parse(address())
      if (url === null || !/^https?:$/.test(url.protocol))
        return failed(`the variable ${config.urlEnv} contains no valid URL`)
      // Refused here, because the error of fetch would repeat the whole address.
      if (url.username !== '' || url.password !== '')
        return failed('its URL contains a user name or a password, which is not allowed')
      if (config.secretEnv === undefined) return await post(url, undefined, event)
      const secret = env[config.secretEnv]
      if (secret === undefined || secret === '') return failed(`the variable ${config.secretEnv} is not set`)
      const key = signingKey(secret)
      return typeof key === 'string' ? failed(key) : await post(url, key, event)
    },
  }
}

function failed(error: string): Posted {
  return { outcome: 'failed', error }
}

const OUTCOMES: Readonly<Record<number, 'rejected' | 'gone'>> = {
  400: 'rejected',
  410: 'gone',
  413: 'rejected',
  415: 'rejected',
  422: 'rejected',
}

/** Reads one chunk only, so that an endless response doesn't block the queue. */
async function beginningOf({ body }: Response): Promise<string> {
  if (body === null) return ''
  const reader = body.getReader()
  try {
    const { value } = await reader.read()
    return Buffer.from(value ?? [])
      .subarray(0, MAX_SHOWN)
      .toString('utf8')
      .replace(/[\p{C}\s]+/gu, ' ')
      .trim()
  } finally {
    reader.cancel().catch(() => {})
  }
}

function reasonOf(error: unknown, timeoutMs: number): string {
  if (error instanceof DOMException && error.name === 'TimeoutError') {
    return `no response within ${timeoutMs / 1000} s`
  }
  const { message, cause } = error instanceof Error ? error : new Error(String(error))
  const { code, message: deeper } = (cause ?? {}) as { code?: string; message?: string }
  return code ?? deeper ?? message
}

const FIRST_MS = 5000
const LONGEST_MS = 3600_000

/** Exponential backoff up to an hour, with up to half of it as jitter. */
export function retryDelay(failures: number, random = Math.random): number {
  const whole = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(failures - 1, 20))
  return Math.round(whole * (1 - random() / 2))
}

/** Reads Retry-After in seconds or as a date; at most an hour. */
function retryAfter(header: string | null, now: number): number | undefined {
  if (header === null) return undefined
  const value = header.trim()
  const isDate = /^[A-Z][a-z]{2}, /.test(value)
  const ms = /^\d{1,9}$/.test(value) ? Number(value) * 1000 : isDate ? Date.parse(value) - now : 0
  return Number.isFinite(ms) && ms > 0 ? Math.min(ms, LONGEST_MS) : undefined
}

/** Prefix of Standard Webhooks secrets; other secrets are used as they are. */
const PREFIX = 'whsec_'
const KEY_BYTES = { least: 16, most: 64 }

/** Returns the signing key of a secret, or the problem with it. */
function signingKey(secret: string): Buffer | string {
  const isEncoded = secret.startsWith(PREFIX)
  const encoded = secret.slice(PREFIX.length)
  if (isEncoded && !/^[A-Za-z0-9+/]+={0,2}$/.test(encoded)) return 'the secret after whsec_ is not base64'
  const key = isEncoded ? Buffer.from(encoded, 'base64') : Buffer.from(secret, 'utf8')
  if (key.length < KEY_BYTES.least) return `the secret is shorter than ${KEY_BYTES.least} bytes`
  if (isEncoded && key.length > KEY_BYTES.most) return `the secret is longer than ${KEY_BYTES.most} bytes`
  return key
}
