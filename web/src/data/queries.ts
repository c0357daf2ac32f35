import { hashKey, useQuery } from '@tanstack/react-query'
import { useEffect, useMemo, useRef, useSyncExternalStore } from 'react'
import type { AnswerOf } from '../../../src/api/contract.ts'
import { ClientError } from '../../../src/client/client.ts'
import type { ConnectionState } from './event-feed.ts'
import type { AuditEntry, QueryArgs, QueryData, QueryName } from './query-table.ts'
import { agentsQuery, queryOptions, useService } from './service.ts'
import { whileVisible } from './while-visible.ts'

export type Agent = AnswerOf<'agents'>['agents'][number]
/** The deliveries take longer to count, and follow. */
export type TeamState = Pick<AnswerOf<'state'>, 'agents' | 'halt'> &
  Partial<Pick<AnswerOf<'state'>, 'deliveries'>>
export type HumanRequest = AnswerOf<'humanRequests'>['requests'][number]
export type Task = AnswerOf<'tasks'>['tasks'][number]
export type Mail = AnswerOf<'messages'>['messages'][number]

const POLL_MS = 2000

/** An answer of the service. It stays on screen while a newer read fails. */
export interface Loaded<T> {
  readonly data: T | undefined
  readonly error: ClientError | undefined
}

interface QueryBehavior<Data> {
  isEnabled?: boolean
  /** Whether the answer can change without an event, and must be polled while it is on screen. */
  needsPolling?: (data: Data) => boolean
}

/** Reads from the service, and again when an event makes the answer outdated. */
export function useServiceQuery<Name extends QueryName>(
  name: Name,
  args: QueryArgs<Name>,
  { isEnabled = true, needsPolling = () => false }: QueryBehavior<QueryData<Name>> = {},
): Loaded<QueryData<Name>> {
  const { client } = useService()
  const options = queryOptions(client, name, args)
  const { data, error } = useQuery({
    ...options,
    ...(isEnabled ? {} : { enabled: false }),
    refetchInterval: ({ state }) => state.data !== undefined && needsPolling(state.data) && POLL_MS,
  })
  // A query without data drops its error while it is read again: keep showing it, or the view would flicker.
  const lastError = useRef<{ hash: string; error: ClientError }>(undefined)
  const hash = hashKey(options.queryKey)
  if (error instanceof ClientError) lastError.current = { hash, error }
  else if (data !== undefined || lastError.current?.hash !== hash) lastError.current = undefined
  const shownError = lastError.current?.error
  return useMemo(() => ({ data, error: shownError }), [data, shownError])
}

/** The team as it stands. A large team is shown before its deliveries are counted. */
export function useTeam(): Loaded<TeamState> {
  const { client } = useService()
  const agents = useQuery(agentsQuery(client))
  const full = useServiceQuery('state', [], { isEnabled: !agents.isPending })
  const members = agents.data?.agents
  const early = useMemo(() => ({ data: members && { agents: members }, error: undefined }), [members])
  return full.data === undefined && full.error === undefined ? early : full
}

/** Follows changes that the audit log does not record, while the window is visible. */
export function useChanges(of: 'github' | 'moderation') {
  const service = useService()
  useEffect(
    () =>
      whileVisible(async (signal) => {
        for await (const _ of service.client.changes(of, { signal })) service.refreshQueries(of)
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
