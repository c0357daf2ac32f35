import type { GitHubResult } from '../core/failure.ts'
import type { MissedDelivery } from '../port.ts'
import type { ApiRequest } from './survey.ts'

interface ListedDelivery {
  readonly id: number
  readonly guid: string
  readonly delivered_at: string
  readonly status: string
  readonly status_code: number
}

const PAGE = 100
/** 10,000 deliveries. */
const MAX_PAGES = 100
const TOO_LARGE = 413

/** Webhook deliveries of an App. */
export function createDeliveries(request: ApiRequest) {
  return {
    /**
     * A delivery succeeded only if its status is OK. The filter of the API compares status codes and would hide
     * deliveries that found no server, which have none.
     */
    async missed(since: number): Promise<GitHubResult<MissedDelivery[]>> {
      const attempts: ListedDelivery[] = []
      let cursor: string | undefined
      for (let page = 0; page < MAX_PAGES; page++) {
        const answer = await request<ListedDelivery[]>(undefined, 'GET /app/hook/deliveries', {
          per_page: PAGE,
          ...(cursor === undefined ? {} : { cursor }),
        })
        if (!answer.ok) return answer
        const { data, headers } = answer.value
        attempts.push(...data.filter(({ delivered_at }) => Date.parse(delivered_at) >= since))
        cursor = nextCursor(String(headers.link ?? ''))
        // Newest first.
        const isPast = data.some(({ delivered_at }) => Date.parse(delivered_at) < since)
        if (cursor === undefined || isPast) break
      }
      const delivered = new Set(attempts.filter(({ status }) => status === 'OK').map(({ guid }) => guid))
      const latest = new Map(attempts.toReversed().map((one) => [one.guid, one]))
      // A webhook that was too large would be refused again.
      const missed = [...latest.values()].filter(
        ({ guid, status_code }) => !delivered.has(guid) && status_code !== TOO_LARGE,
      )
      return { ok: true, value: missed.map(({ id, guid }) => ({ id, guid })) }
    },
    async redeliver(id: number): Promise<GitHubResult<undefined>> {
      const answer = await request(undefined, 'POST /app/hook/deliveries/{delivery_id}/attempts', {
        delivery_id: id,
      })
      return answer.ok ? { ok: true, value: undefined } : answer
    },
  }
}

/** Reads `<https://…?cursor=v1_123>; rel="next"`. */
function nextCursor(link: string): string | undefined {
  const [, url] = /<([^>]+)>;\s*rel="next"/.exec(link) ?? []
  return url === undefined ? undefined : (new URL(url).searchParams.get('cursor') ?? undefined)
}
