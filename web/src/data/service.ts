import { type Query, QueryCache, QueryClient } from '@tanstack/react-query'
import { createContext, use } from 'react'
import type { AnswerOf } from '../../../src/api/contract.ts'
import { type Client, ClientError } from '../../../src/client/client.ts'
import { sessionHalf } from './api-client.ts'
import { type EventFeed, openEventFeed } from './event-feed.ts'
import { QUERIES, type QueryArgs, type QueryData, type QueryName } from './query-table.ts'

export type Me = AnswerOf<'me'>

/** The service as a signed-in page sees it: its client, its events, and its cached answers. */
export interface Service {
  readonly client: Client
  readonly me: Me
  readonly events: EventFeed
  readonly queries: QueryClient
  mayAct(): boolean
  /** Refetches what events of these topics make outdated, without waiting for the events. */
  refreshTopics(...topics: string[]): void
  /** Refetches the queries with this name whose arguments start like this. */
  refreshQueries(name: QueryName, ...args: unknown[]): void
  /** Stops all reads; resolves when those in flight have ended, or take too long. */
  close(): Promise<void>
}

/** Slow answers are read less often, but at least this often. */
const LONGEST_PAUSE_MS = 5000
const CLOSE_MS = 500

const DEFAULTS = {
  // The client retries by itself, and the events say when to read again.
  ...{ retry: false, refetchOnWindowFocus: false, refetchOnReconnect: false },
  // The service may run on this machine: being offline does not matter.
  networkMode: 'always' as const,
  // Events keep a query on screen up to date, so only the first component that shows it has to read it.
  staleTime: (query: { getObserversCount(): number }) => (query.getObserversCount() > 1 ? Infinity : 0),
}

/** Opens the event stream, and refetches each query on screen when an event makes its answer outdated. */
export function connectService(client: Client, me: Me, onSignedOut: () => void): Service {
  let isClosed = false
  const timers = new Map<Query, ReturnType<typeof setTimeout>>()
  const durations = new WeakMap<Query, number>()
  const queries = new QueryClient({
    queryCache: new QueryCache({
      onError: (error) => {
        if (error instanceof ClientError && error.code === 'UNAUTHENTICATED') onSignedOut()
      },
    }),
    defaultOptions: { queries: DEFAULTS },
  })
  const cache = queries.getQueryCache()

  function refresh(query: Query) {
    if (isClosed || timers.has(query)) return
    const isFetching = query.state.fetchStatus !== 'idle'
    // A query that is not on screen is read when it is shown again.
    if (!query.isActive() && !isFetching) return
    const { everyMs } = QUERIES[query.queryKey[0] as QueryName]
    const pause = Math.max(everyMs, Math.min((durations.get(query) ?? 0) * 5, LONGEST_PAUSE_MS))
    const since = Date.now() - Math.max(query.state.dataUpdatedAt, query.state.errorUpdatedAt)
    const wait = Math.max(0, Math.min(pause, pause - since))
    timers.set(
      query,
      setTimeout(() => void refetch(query), wait),
    )
  }

  async function refetch(query: Query) {
    const startedAt = performance.now()
    // Joins a fetch in flight, whose answer may be older than the event: then another one follows.
    const isJoining = query.state.fetchStatus !== 'idle'
    if (!isJoining) timers.delete(query)
    if (isJoining || query.isActive()) {
      await query.fetch().catch(() => {
        // The query holds its error, and the view shows it.
      })
      durations.set(query, performance.now() - startedAt)
    }
    if (!isJoining) return
    timers.delete(query)
    refresh(query)
  }

  function refreshTopics(topics: ReadonlySet<string>) {
    for (const query of cache.getAll()) {
      const { on } = QUERIES[query.queryKey[0] as QueryName]
      if (on === 'all' || on.some((topic) => topics.has(topic))) refresh(query)
    }
  }

  const events = openEventFeed({
    client,
    name: `orchub.events.${sessionHalf() ?? me.name}`,
    onTopics: refreshTopics,
    onMissed: () => cache.getAll().forEach(refresh),
    onSignedOut,
  })

  void queries.prefetchQuery(agentsQuery(client))

  return {
    client,
    me,
    events,
    queries,
    mayAct: () => me.role === 'operator',
    refreshTopics: (...topics) => refreshTopics(new Set(topics)),
    refreshQueries: (...queryKey) => cache.findAll({ queryKey }).forEach(refresh),
    async close() {
      isClosed = true
      events.close()
      for (const timer of timers.values()) clearTimeout(timer)
      queries.setDefaultOptions({ queries: { ...DEFAULTS, enabled: false } })
      const inFlight = cache.findAll({ fetchStatus: 'fetching' }).map((query) => query.fetch())
      await Promise.race([
        Promise.allSettled(inFlight),
        new Promise((resolve) => setTimeout(resolve, CLOSE_MS)),
      ])
    },
  }
}

/** The only place that makes query keys: the key names the loader in the table, and holds its arguments. */
export function queryOptions<Name extends QueryName>(client: Client, name: Name, args: QueryArgs<Name>) {
  const queryKey = [name, ...args] as const
  // TypeScript does not see that the arguments belong to this loader.
  const load = QUERIES[name].load as (reading: object, ...args: unknown[]) => Promise<QueryData<Name>>
  return {
    queryKey,
    queryFn: async ({ client: queries }: { client: QueryClient }) => {
      try {
        return await load({ client, before: queries.getQueryData(queryKey) }, ...args)
      } catch (error) {
        if (error instanceof ClientError) throw error
        console.error(error)
        throw new ClientError('INTERNAL', 'The page could not read the answer of the service', {})
      }
    },
  }
}

/** The members of the team, loaded once and earlier than the delivery counts of a large team. */
export function agentsQuery(client: Client) {
  return { ...queryOptions(client, 'agents', []), staleTime: Infinity, gcTime: Infinity }
}

export const ServiceContext = createContext<Service | undefined>(undefined)

export function useService(): Service {
  const service = use(ServiceContext)
  if (service === undefined) throw new Error('This component needs a ServiceContext')
  return service
}
