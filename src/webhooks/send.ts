import { createHmac, hash } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import type { WebhookConfig } from '../config/config.ts'
import { bodyOf, type WebhookEvent } from './event.ts'

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

/** `rejected`: the receiver does not want this one. `gone`: it wants none any more. `failed`: it may want it later. */
export type Posted =
  | { outcome: 'sent'; status: number }
  | { outcome: 'failed' | 'rejected' | 'gone'; error: string; status?: number; retryAfterMs?: number }

export interface Letter {
  url: string
  id: string
  body: string
  /** Without one it is not signed. */
  key: Buffer | undefined
  now: number
  agent: string
  timeoutMs: number
}

/** Of what a receiver answers, for whoever looks for the reason. */
const SHOWN = 200

/** One attempt, without following redirects: what was signed for one address is not for another. */
export async function post(letter: Letter, closing: AbortSignal): Promise<Posted> {
  const { url, id, body, key, now, agent, timeoutMs } = letter
  const seconds = Math.floor(now / 1000)
  try {
    const response = await fetch(url, {
      method: 'POST',
      redirect: 'manual',
      headers: {
        'content-type': 'application/json',
        'user-agent': agent,
        'webhook-id': id,
        'webhook-timestamp': String(seconds),
        ...(key === undefined ? {} : { 'webhook-signature': sign(key, id, seconds, body) }),
      },
      body,
      signal: AbortSignal.any([closing, AbortSignal.timeout(timeoutMs)]),
    })
    const { status } = response
    if (response.ok) {
      // It has it: what else it says, or fails to say, does not matter.
      response.body?.cancel().catch(() => {})
      return { outcome: 'sent', status }
    }
    const said = await beginningOf(response)
    const wait = retryAfter(response.headers.get('retry-after'), now)
    return {
      outcome: OUTCOMES[status] ?? 'failed',
      status,
      error: `${status}${status >= 300 && status < 400 ? ': a redirect, which is not followed' : ''}${said === '' ? '' : `: ${said}`}`,
      ...(wait === undefined ? {} : { retryAfterMs: wait }),
    }
  } catch (error) {
    return { outcome: 'failed', error: reasonOf(error, timeoutMs) }
  }
}

const OUTCOMES: Readonly<Record<number, 'rejected' | 'gone'>> = {
  400: 'rejected',
  410: 'gone',
  413: 'rejected',
  415: 'rejected',
  422: 'rejected',
}

/** No more is read: an answer without end would keep the others waiting. */
async function beginningOf({ body }: Response): Promise<string> {
  if (body === null) return ''
  const reader = body.getReader()
  try {
    const { value } = await reader.read()
    return Buffer.from(value ?? [])
      .subarray(0, SHOWN)
      .toString('utf8')
      .replace(/[\p{C}\s]+/gu, ' ')
      .trim()
  } finally {
    reader.cancel().catch(() => {})
  }
}

function reasonOf(error: unknown, timeoutMs: number): string {
  if (error instanceof DOMException && error.name === 'TimeoutError') {
    return `no answer within ${timeoutMs / 1000} s`
  }
  const { message, cause } = error instanceof Error ? error : new Error(String(error))
  const { code, message: deeper } = (cause ?? {}) as { code?: string; message?: string }
  return code ?? deeper ?? message
}

const FIRST_MS = 5000
const LONGEST_MS = 3600_000

/** Twice as long each time, up to an hour; up to half of it at random, so that many don't come back at once. */
export function retryDelay(failures: number, random: () => number): number {
  const whole = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(failures - 1, 20))
  return Math.round(whole * (1 - random() / 2))
}

/** What the receiver asks for: seconds, or a date. Never more than an hour. */
export function retryAfter(header: string | null, now: number): number | undefined {
  if (header === null) return undefined
  const said = header.trim()
  const isDate = /^[A-Z][a-z]{2}, /.test(said)
  const ms = /^\d{1,9}$/.test(said) ? Number(said) * 1000 : isDate ? Date.parse(said) - now : 0
  return Number.isFinite(ms) && ms > 0 ? Math.min(ms, LONGEST_MS) : undefined
}

/** As Standard Webhooks has it: secrets of other shapes are taken as they are. */
const PREFIX = 'whsec_'
const KEY_BYTES = { least: 16, most: 64 }

/** The key that a secret from the environment stands for; a text says what is wrong with it. */
export function signingKey(secret: string): Buffer | string {
  const isEncoded = secret.startsWith(PREFIX)
  const encoded = secret.slice(PREFIX.length)
  if (isEncoded && !/^[A-Za-z0-9+/]+={0,2}$/.test(encoded)) return 'the secret after whsec_ is not base64'
  const key = isEncoded ? Buffer.from(encoded, 'base64') : Buffer.from(secret, 'utf8')
  if (key.length < KEY_BYTES.least) return `the secret is shorter than ${KEY_BYTES.least} bytes`
  if (isEncoded && key.length > KEY_BYTES.most) return `the secret is longer than ${KEY_BYTES.most} bytes`
  return key
}

/** Over the id, the time of this attempt and the very bytes of the body. */
export function sign(key: Buffer, id: string, seconds: number, body: string): string {
  return `v1,${createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64')}`
}
