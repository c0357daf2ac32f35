import type { Answer } from '../core/failure.ts'
import type { MissedDelivery } from '../port.ts'
import type { Exchange } from './survey.ts'

interface Listed {
  readonly id: number
  readonly guid: string
  readonly delivered_at: string
  readonly status: string
  readonly status_code: number
}

const PAGE = 100
/** A page holds a hundred; whoever missed more than that in three days has other worries. */
const MOST_PAGES = 100
const TOO_LARGE = 413

/** What GitHub sent to the hook of an App, and with what success; for the App itself only. */
export function createDeliveries(exchange: Exchange) {
  return {
    /**
     * By its documentation a delivery succeeded when its status is OK, and only then: one that found nobody at home has no
     * status code to go by, so that the filter of the API, which goes by the code, would hide it.
     */
    async missed(since: number): Promise<Answer<MissedDelivery[]>> {
      const attempts: Listed[] = []
      let cursor: string | undefined
      for (let page = 0; page < MOST_PAGES; page++) {
        const answer = await exchange<Listed[]>(undefined, 'GET /app/hook/deliveries', {
          per_page: PAGE,
          ...(cursor === undefined ? {} : { cursor }),
        })
        if (!answer.ok) return answer
        const { data, headers } = answer.value
        attempts.push(...data.filter(({ delivered_at }) => Date.parse(delivered_at) >= since))
        cursor = nextCursor(String(headers.link ?? ''))
        // The latest come first.
        const isPast = data.some(({ delivered_at }) => Date.parse(delivered_at) < since)
        if (cursor === undefined || isPast) break
      }
      const taken = new Set(attempts.filter(({ status }) => status === 'OK').map(({ guid }) => guid))
      const latest = new Map(attempts.toReversed().map((one) => [one.guid, one]))
      // It would be too large again.
      const missed = [...latest.values()].filter(
        ({ guid, status_code }) => !taken.has(guid) && status_code !== TOO_LARGE,
      )
      return { ok: true, value: missed.map(({ id, guid }) => ({ id, guid })) }
    },
    async redeliver(id: number): Promise<Answer<undefined>> {
      const answer = await exchange(undefined, 'POST /app/hook/deliveries/{delivery_id}/attempts', {
        delivery_id: id,
      })
      return answer.ok ? { ok: true, value: undefined } : answer
    },
  }
}

/** Of `<https://…?cursor=v1_123>; rel="next"`. */
function nextCursor(link: string): string | undefined {
  const [, url] = /<([^>]+)>;\s*rel="next"/.exec(link) ?? []
  return url === undefined ? undefined : (new URL(url).searchParams.get('cursor') ?? undefined)
}
