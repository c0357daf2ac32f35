import { type Client, createClient, type FetchLike } from '../../../src/client/client.ts'
import { tellServiceTime } from './service-clock.ts'

/** The half of the session that this page keeps; the cookie is the other one. */
const KEPT = 'orchub.session'

export function keptHalf(): string | null {
  return localStorage.getItem(KEPT)
}

export function keepHalf(half: string | undefined) {
  if (half === undefined) localStorage.removeItem(KEPT)
  else localStorage.setItem(KEPT, half)
}

/** Whoever acts is told when nothing comes back: long enough for a stop that interrupts a large team. */
const ANSWER_MS = 20_000

/** The ordinary client, with the two halves instead of a token. */
export function openClient(): Client {
  const fetchWithSession: FetchLike = async (url, { headers, ...init }) => {
    const { authorization: _, ...rest } = headers
    const half = keptHalf()
    const late = new AbortController()
    const timer = init.method === 'GET' ? undefined : setTimeout(() => late.abort(), ANSWER_MS)
    try {
      const answer = await fetch(url, {
        ...init,
        headers: half === null ? rest : { ...rest, 'x-orc-session': half },
        credentials: 'same-origin',
        signal: init.signal === undefined ? late.signal : AbortSignal.any([init.signal, late.signal]),
      })
      tellServiceTime(answer.headers.get('date'))
      return answer
    } finally {
      clearTimeout(timer)
    }
  }
  return createClient({ url: location.origin, token: '', fetch: fetchWithSession, retries: 1 })
}
