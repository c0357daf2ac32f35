import { hashKey, useQuery } from '@tanstack/react-query'
import { useEffect, useMemo, useRef, useSyncExternalStore } from 'react'
import type { AnswerOf } from '../../../src/api/contract.ts'
import { type Client, ClientError } from '../../../src/client/client.ts'
import type { AuditEntry, ConnectionState } from './event-feed.ts'
import type { ServiceQueryKey } from './query-topics.ts'
import { agentsQuery, useService } from './service.ts'
import { whileVisible } from './while-visible.ts'

export type Agent = AnswerOf<'agents'>['agents'][number]
/** The deliveries take longer to count, and follow. */
export type TeamState = Pick<AnswerOf<'state'>, 'agents' | 'halt'> &
  Partial<Pick<AnswerOf<'state'>, 'deliveries'>>
export type HumanRequest = AnswerOf<'humanRequests'>['requests'][number]
export type Task = AnswerOf<'tasks'>['tasks'][number]
export type Mail = AnswerOf<'messages'>['messages'][number]

/** An answer of the service. It stays on screen while a newer read fails. */
export interface Loaded<T> {
  readonly data: T | undefined
  readonly error: ClientError | undefined
}

/** Reads from the service, and again when an event makes the answer outdated (see `query-topics.ts`). */
export function useServiceQuery<T>(
  key: ServiceQueryKey,
  load: (client: Client, before: T | undefined) => Promise<T>,
  { isEnabled = true } = {},
): Loaded<T> {
  const { client } = useService()
  const { data, error } = useQuery({
    queryKey: key,
    queryFn: async ({ client: queries }) => {
      try {
        return await load(client, queries.getQueryData<T>(key))
      } catch (thrown) {
        if (thrown instanceof ClientError) throw thrown
        console.error(thrown)
        throw new ClientError('INTERNAL', 'The page could not read the answer of the service', {})
      }
    },
    ...(isEnabled ? {} : { enabled: false }),
  })
  // A query without data drops its error while it is read again: keep showing it, or the view would flicker.
  const lastError = useRef<{ hash: string; error: ClientError }>(undefined)
  const hash = hashKey(key)
  if (error instanceof ClientError) lastError.current = { hash, error }
  else if (data !== undefined || lastError.current?.hash !== hash) lastError.current = undefined
  const shownError = lastError.current?.error
  return useMemo(() => ({ data, error: shownError }), [data, shownError])
}

/** The team as it stands. */
export function useTeam(): Loaded<TeamState> {
  const { client, queries } = useService()
  const agents = useQuery(agentsQuery(client)).data?.agents
  const full = useServiceQuery<TeamState>(['state'], async () => {
    await queries.fetchQuery(agentsQuery(client))
    return await client.state()
  })
  const early = useMemo(() => ({ data: agents && { agents }, error: undefined }), [agents])
  return full.data === undefined && full.error === undefined ? early : full
}

export function useRequests(): Loaded<HumanRequest[]> {
  return useServiceQuery(
    ['humanRequests', 'open'],
    async (client) => (await client.humanRequests({ state: 'open', limit: 1000 })).requests,
  )
}

export function useTasks(state: 'open' | 'all'): Loaded<Task[]> {
  return useServiceQuery(
    ['tasks', state],
    async (client) => (await client.tasks({ state, limit: 1000 })).tasks,
  )
}

export function useMessage(id: string): Loaded<AnswerOf<'message'>> {
  return useServiceQuery(['message', id], (client) => client.message(id))
}

/** Follows changes that the audit log does not record, while the window is visible. */
export function useChanges(of: 'github' | 'moderation') {
  const service = useService()
  useEffect(
    () =>
      whileVisible(async (signal) => {
        for await (const _ of service.client.changes(of, { signal })) service.refreshQueries([of])
      }),
    [service, of],
  )
}

export function useConnection(): ConnectionState {
  const { events } = useService()
  return useSyncExternalStore(events.subscribe, events.connection)
}

export function useRecentEntries(): readonly AuditEntry[] {
  const { events } = useService()
  return useSyncExternalStore(events.subscribe, events.recent)
}

export function useNewEntries(listener: (entries: readonly AuditEntry[]) => void) {
  const { events } = useService()
  useEffect(() => events.onEntries(listener), [events, listener])
}
