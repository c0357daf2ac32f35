import { type Client, createClient, type FetchLike } from '../../../src/client/client.ts'
import { setServiceTime } from './service-clock.ts'

/** A session has two halves: the page stores this one, the cookie is the other. */
const STORAGE_KEY = 'orchub.session'

export function sessionHalf(): string | null {
  return localStorage.getItem(STORAGE_KEY)
}

export function storeSessionHalf(half: string | undefined) {
  if (half === undefined) localStorage.removeItem(STORAGE_KEY)
  else localStorage.setItem(STORAGE_KEY, half)
}

/** Timeout of requests that change something. Halting a large team interrupts every agent, which takes a while. */
const WRITE_TIMEOUT_MS = 20_000

/** The regular client, signed in by the two halves of a session instead of a token. */
export function openClient(): Client {
  const fetchWithSession: FetchLike = async (url, { headers, ...init }) => {
    const { authorization: _, ...rest } = headers
    const half = sessionHalf()
    const timeout = new AbortController()
    const timer = init.method === 'GET' ? undefined : setTimeout(() => timeout.abort(), WRITE_TIMEOUT_MS)
    try {
      const answer = await fetch(url, {
        ...init,
        headers: half === null ? rest : { ...rest, 'x-orc-session': half },
        credentials: 'same-origin',
        signal: init.signal === undefined ? timeout.signal : AbortSignal.any([init.signal, timeout.signal]),
      })
      setServiceTime(answer.headers.get('date'))
      return answer
    } finally {
      clearTimeout(timer)
    }
  }
  return createClient({ url: location.origin, token: '', fetch: fetchWithSession, retries: 1 })
}
