import { createAppAuth } from '@octokit/auth-app'
import { Octokit } from '@octokit/core'
import { AppError } from '../../base/errors.ts'
import type { GitHubResult, MissedDelivery } from '../port.ts'
import { mapped, ownerAndName } from './responses.ts'
import type { ApiRequest } from './survey.ts'

type OctokitClientOptions = NonNullable<ConstructorParameters<typeof Octokit>[0]>

/** Clients of a GitHub App: one for the App itself and one for each installation, which may cover many repositories. */
export function createApp(basic: OctokitClientOptions, credentials: Extract<Credentials, { kind: 'app' }>) {
  const installations = new Map<string, Promise<number>>()
  const clients = new Map<number, Octokit>()

  function authenticated(installationId?: number): Octokit {
    const privateKey = credentials.key()
    if (privateKey === undefined)
      throw new AppError('CONFIG_INVALID', 'The private key of the GitHub App is not set in the environment')
    return new Octokit({
      ...basic,
      authStrategy: createAppAuth,
      auth: {
        appId: credentials.id,
        privateKey,
        ...(installationId === undefined ? {} : { installationId }),
      },
    })
  }

  return {
    asApp: () => authenticated(),
    asInstallation(id: number): Octokit {
      const client = clients.get(id) ?? authenticated(id)
      clients.set(id, client)
      return client
    },
    /** False if no installation was cached. */
    async forget(repository: string): Promise<boolean> {
      const known = await installations.get(repository)?.catch(() => undefined)
      if (known !== undefined) clients.delete(known)
      return installations.delete(repository)
    },
    knows: (repository: string): boolean => installations.has(repository),
    installationOf(repository: string): Promise<number> {
      const known = installations.get(repository)
      if (known !== undefined) return known
      const found = authenticated()
        .request('GET /repos/{owner}/{repo}/installation', ownerAndName(repository))
        .then(({ data }) => data.id)
      installations.set(repository, found)
      // Failures aren't cached: the App may be installed later.
      found.catch(() => {
        if (installations.get(repository) === found) installations.delete(repository)
      })
      return found
    },
  }
}

/** The functions read secrets from the environment for each call, so that none is stored. */
export type Credentials =
  | { readonly kind: 'token'; token(): string | undefined }
  | { readonly kind: 'app'; readonly id: number; key(): string | undefined }

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
      const route = 'POST /app/hook/deliveries/{delivery_id}/attempts'
      return await mapped(request(undefined, route, { delivery_id: id }), () => undefined)
    },
  }
}

/** Reads `<https://…?cursor=v1_123>; rel="next"`. */
function nextCursor(link: string): string | undefined {
  const [, url] = /<([^>]+)>;\s*rel="next"/.exec(link) ?? []
  return url === undefined ? undefined : (new URL(url).searchParams.get('cursor') ?? undefined)
}
