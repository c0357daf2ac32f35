import { type Client, createClient, type FetchLike } from '../../src/client/client.ts'

/** The half of the session that this page keeps; the cookie is the other one. */
const KEPT = 'orchub.session'

export function keptHalf(): string | null {
  return localStorage.getItem(KEPT)
}

export function keepHalf(half: string | undefined) {
  if (half === undefined) localStorage.removeItem(KEPT)
  else localStorage.setItem(KEPT, half)
}

/** The ordinary client, with the two halves instead of a token. */
export function openClient(): Client {
  const fetchWithSession: FetchLike = (url, { headers, ...init }) => {
    const { authorization: _, ...rest } = headers
    const half = keptHalf()
    return fetch(url, {
      ...init,
      headers: half === null ? rest : { ...rest, 'x-orc-session': half },
      credentials: 'same-origin',
    })
  }
  return createClient({ url: location.origin, token: '', fetch: fetchWithSession, retries: 1 })
}
