import { retryAfter } from './backoff.ts'
import { sign } from './signature.ts'

/** `rejected`: the receiver does not want this one. `gone`: it wants none any more. `failed`: it may want it later. */
export type Posted =
  | { outcome: 'sent'; status: number }
  | { outcome: 'failed' | 'rejected' | 'gone'; error: string; status?: number; retryAfterMs?: number }

interface Letter {
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
