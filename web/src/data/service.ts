import { createContext, use, useEffect, useMemo, useSyncExternalStore } from 'react'
import { type Client, ClientError } from '../../../src/client/client.ts'
import type { AnswerOf, AuditEntryAnswer } from '../../../src/service/contract.ts'
import { keptHalf } from './api-client.ts'
import { followEvents } from './shared-event-stream.ts'
import { whileSeen } from './while-visible.ts'

export type Me = AnswerOf<'me'>
export type Agent = AnswerOf<'agents'>['agents'][number]
/** Without what is not known yet. */
export type State = Pick<AnswerOf<'state'>, 'agents' | 'halt'> &
  Partial<Pick<AnswerOf<'state'>, 'deliveries'>>
export type Request = AnswerOf<'humanRequests'>['requests'][number]
export type Task = AnswerOf<'tasks'>['tasks'][number]
export type Mail = AnswerOf<'messages'>['messages'][number]
export type Entry = AuditEntryAnswer

export interface Answer<T> {
  readonly data: T | undefined
  readonly error: ClientError | undefined
}

interface Query {
  answer: Answer<unknown>
  topics: ReadonlySet<string> | 'all'
  everyMs: number
  /** How long the last reading took: what takes long is read less often. */
  tookMs: number
  readers: Set<() => void>
  load(before: unknown): Promise<unknown>
  isRunning: boolean
  isStale: boolean
  endedAt: number
  timer: ReturnType<typeof setTimeout> | undefined
  /** One for all who ask the same, or React would subscribe anew at every render. */
  handle: Handle<unknown> | undefined
}

/** Of the stream: not there yet, there, or lost after it was. */
export type Link = 'opening' | 'live' | 'lost'

export interface Room {
  readonly client: Client
  readonly me: Me
  mayAct(): boolean
  link(): Link
  /** The newest events, oldest first. */
  recent(): readonly Entry[]
  subscribe(reader: () => void): () => void
  onEvents(reader: (entries: readonly Entry[]) => void): () => void
  ask<T>(key: string, load: Load<T>, topics: readonly string[] | 'all', everyMs: number): Handle<T>
  /** Who is in the team, as it was when the page was opened: asked for once, before everything else. */
  early(): Promise<AnswerOf<'agents'>>
  /** Reads again what these events make out of date, without waiting for them. */
  touch(...topics: string[]): void
  /** Nothing is read from now on; resolves when what is under way is answered, or takes too long. */
  close(): Promise<void>
}

/** `before`: what the last reading gave, for what only grows. */
type Load<T> = (before: T | undefined) => Promise<T>

export interface Handle<T> {
  get(): Answer<T>
  subscribe(reader: () => void): () => void
}

const KEPT_EVENTS = 400
const REMEMBERED = 120
/** Faster than this nobody reads; and a page that nobody sees has no frames, but still has to tell of questions. */
const CALM_MS = 100
const HIDDEN_MS = 250
/** A slow answer makes the next one wait, but never for longer. */
const LONGEST_WAIT_MS = 5000
/** For answers that are under way when the page is left. */
const CLOSE_MS = 500
/** Answers that nobody looks at any more, for whoever comes back to them. */
const KEPT_ANSWERS = 12
const NOTHING: Answer<unknown> = { data: undefined, error: undefined }

/**
 * All that the page knows. The stream is opened first; what is read after it is read again when an event says that
 * it is out of date, so that nothing is missed and nothing is guessed.
 */
export function openRoom(client: Client, me: Me, onSignedOut: () => void): Room {
  const abort = new AbortController()
  const underWay = new Set<Promise<void>>()
  const queries = new Map<string, Query>()
  const readers = new Set<() => void>()
  const listeners = new Set<(entries: readonly Entry[]) => void>()
  let recent: readonly Entry[] = []
  let link: Link = 'opening'
  let isAwaited = true
  let waiting: Entry[] = []
  let isScheduled = false
  let flushedAt = Number.NEGATIVE_INFINITY

  /** Once per frame, and calmly. */
  function schedule() {
    if (isScheduled) return
    isScheduled = true
    let isDone = false
    const once = () => {
      if (isDone) return
      isDone = true
      flush()
    }
    const wait = Math.max(0, flushedAt + CALM_MS - performance.now())
    setTimeout(() => requestAnimationFrame(once), wait)
    setTimeout(once, wait + HIDDEN_MS)
  }

  function flush() {
    isScheduled = false
    flushedAt = performance.now()
    const entries = waiting
    waiting = []
    if (entries.length > 0) {
      const known = new Set(recent.map(({ seq }) => seq))
      recent = [...recent, ...entries.filter(({ seq }) => !known.has(seq))]
        .toSorted((one, other) => one.seq - other.seq)
        .slice(-KEPT_EVENTS)
      invalidate(new Set(entries.map(({ type }) => type.split('.', 1)[0]!)))
      for (const listener of listeners) listener(entries)
    }
    for (const reader of [...readers]) reader()
  }

  function invalidate(topics: ReadonlySet<string>) {
    for (const query of queries.values()) {
      const isHit = query.topics === 'all' || [...query.topics].some((topic) => topics.has(topic))
      if (isHit) refresh(query)
    }
  }

  function refresh(query: Query) {
    query.isStale = true
    if (abort.signal.aborted || query.readers.size === 0 || query.isRunning || query.timer !== undefined)
      return
    const pause = Math.max(query.everyMs, Math.min(query.tookMs * 5, LONGEST_WAIT_MS))
    const wait = Math.max(0, query.endedAt + pause - performance.now())
    query.timer = setTimeout(() => {
      const done = run(query).finally(() => underWay.delete(done))
      underWay.add(done)
    }, wait)
  }

  async function run(query: Query) {
    query.timer = undefined
    query.isStale = false
    query.isRunning = true
    const startedAt = performance.now()
    try {
      query.answer = { data: await query.load(query.answer.data), error: undefined }
    } catch (error) {
      const fault = error instanceof ClientError ? error : undefined
      if (fault?.code === 'UNAUTHENTICATED') onSignedOut()
      if (fault === undefined) console.error(error)
      query.answer = {
        data: query.answer.data,
        error: fault ?? new ClientError('INTERNAL', 'The page could not make sense of the answer', {}),
      }
    }
    query.isRunning = false
    query.endedAt = performance.now()
    query.tookMs = query.endedAt - startedAt
    for (const reader of [...query.readers]) reader()
    if (query.isStale) refresh(query)
  }

  /** Of what nobody looks at, only the last few stay. */
  function forgetOldest() {
    const unread = [...queries]
      .filter(([, { readers, isRunning, endedAt }]) => readers.size === 0 && !isRunning && endedAt > 0)
      .toSorted(([, one], [, other]) => other.endedAt - one.endedAt)
    for (const [key, { timer }] of unread.slice(KEPT_ANSWERS)) {
      clearTimeout(timer)
      queries.delete(key)
    }
  }

  function readAllAgain() {
    for (const query of queries.values()) refresh(query)
  }

  async function follow() {
    const reader = {
      signal: abort.signal,
      onEntry(entry: Entry) {
        waiting.push(entry)
        schedule()
      },
      onLink(isUp: boolean) {
        const wasDown = isUp && link !== 'live'
        // The first word of it is that it is being opened.
        link = isUp ? 'live' : isAwaited ? 'opening' : 'lost'
        isAwaited = false
        // What happened meanwhile comes with the stream; but it may have been a reading that failed.
        if (wasDown) readAllAgain()
        // Read when it is known that the stream tells of all that comes: nothing falls between the two (S2.16).
        if (wasDown) void remember()
        schedule()
      },
      onGap() {
        readAllAgain()
        void remember()
      },
    }
    while (!abort.signal.aborted) {
      try {
        await followEvents(client, `orchub.events.${keptHalf() ?? me.name}`, reader)
      } catch (error) {
        if (abort.signal.aborted) return
        if (error instanceof ClientError && error.code === 'UNAUTHENTICATED') {
          onSignedOut()
          return
        }
        link = 'lost'
        schedule()
        // Another store, or not there yet: from the beginning.
        await new Promise((resolve) => setTimeout(resolve, 1000))
      }
    }
  }

  /** What happened just before, so that the page is not empty until something does. */
  async function remember() {
    try {
      const before: Entry[] = []
      for await (const entry of client.audit({ limit: REMEMBERED })) before.push(entry)
      // Some of them may have come by the stream as well, and wait for the next frame.
      const known = new Set([...recent, ...waiting].map(({ seq }) => seq))
      recent = [...before.filter(({ seq }) => !known.has(seq)), ...recent]
        .toSorted((one, other) => one.seq - other.seq)
        .slice(-KEPT_EVENTS)
      schedule()
    } catch {
      // The stream tells what comes; that is enough.
    }
  }

  let agents: Promise<AnswerOf<'agents'>> | undefined
  function early() {
    agents ??= client.agents().catch((error: unknown) => {
      agents = undefined
      throw error
    })
    return agents
  }
  early().catch(() => {
    // Whoever asks for it next is told why.
  })

  void follow()

  return {
    client,
    me,
    early,
    mayAct: () => me.role === 'operator',
    link: () => link,
    recent: () => recent,
    subscribe(reader) {
      readers.add(reader)
      return () => readers.delete(reader)
    },
    onEvents(reader) {
      listeners.add(reader)
      return () => listeners.delete(reader)
    },
    ask<T>(key: string, load: Load<T>, topics: readonly string[] | 'all', everyMs: number) {
      let query = queries.get(key)
      if (query === undefined) {
        query = {
          answer: NOTHING,
          topics: topics === 'all' ? 'all' : new Set(topics),
          everyMs,
          tookMs: 0,
          readers: new Set(),
          load: load as Load<unknown>,
          isRunning: false,
          isStale: true,
          endedAt: Number.NEGATIVE_INFINITY,
          timer: undefined,
          handle: undefined,
        }
        queries.set(key, query)
      }
      // Whoever asks the same under the same name must want to be told of the same: the first would decide for both.
      if (String(topics) !== String(query.topics === 'all' ? 'all' : [...query.topics]))
        throw new Error(`${key} is asked for with two sets of topics`)
      const mine = query
      mine.handle ??= {
        get: () => mine.answer,
        subscribe(reader: () => void) {
          mine.readers.add(reader)
          // It may have been forgotten since it was asked for.
          if (!queries.has(key)) queries.set(key, mine)
          if (mine.isStale) refresh(mine)
          return () => {
            mine.readers.delete(reader)
            // What nobody looks at is read anew when somebody does.
            if (mine.readers.size > 0) return
            mine.isStale = true
            forgetOldest()
          }
        },
      }
      return mine.handle as Handle<T>
    },
    touch: (...topics) => invalidate(new Set(topics)),
    async close() {
      abort.abort()
      for (const { timer } of queries.values()) clearTimeout(timer)
      const answered = Promise.all([...underWay])
      await Promise.race([answered, new Promise((resolve) => setTimeout(resolve, CLOSE_MS))])
    },
  }
}

export const RoomContext = createContext<Room | undefined>(undefined)

export function useRoom(): Room {
  const room = use(RoomContext)
  if (room === undefined) throw new Error('This part is shown outside of the room')
  return room
}

/** What the store says, and says again when one of these topics (`message`, `task`, …) has an event. */
export function useAsk<T>(
  key: string,
  load: (client: Client, before: T | undefined) => Promise<T>,
  topics: readonly string[] | 'all',
  everyMs = 500,
): Answer<T> {
  const room = useRoom()
  const handle = room.ask<T>(key, (before) => load(room.client, before), topics, everyMs)
  return useSyncExternalStore(handle.subscribe, handle.get)
}

/** What has to do with who is in the team and what they do; `action`: somebody was paused, started, stopped. */
export const TEAM_TOPICS = [
  'session',
  'agent',
  'action',
  'message',
  'delivery',
  'human',
  'halt',
  'config',
  'service',
  'spend',
  'context',
  'team',
  'terminal',
]

/** The team as it stands. Who is in it is known first: counting all that waits takes its time where much does. */
export function useTeam(): Answer<State> {
  const { early } = useRoom()
  const first = useAsk('agents', () => early(), [])
  const full = useAsk<State>(
    'state',
    async (client) => {
      await early()
      return await client.state()
    },
    TEAM_TOPICS,
  )
  const agents = first.data?.agents
  const known = useMemo(() => ({ data: agents && { agents }, error: undefined }), [agents])
  return full.data === undefined && full.error === undefined ? known : full
}

export function useRequests(): Answer<Request[]> {
  return useAsk(
    'requests',
    async (client) => (await client.humanRequests({ state: 'open', limit: 1000 })).requests,
    ['human', 'token', 'config'],
    150,
  )
}

/** One reading for every view that shows tasks. */
export function useTasks(state: 'open' | 'all'): Answer<Task[]> {
  return useAsk(`tasks:${state}`, async (client) => (await client.tasks({ state, limit: 1000 })).tasks, [
    'task',
    'message',
    'human',
  ])
}

export function useMessage(id: string): Answer<AnswerOf<'message'>> {
  return useAsk(`message:${id}`, (client) => client.message(id), [
    'delivery',
    'message',
    // These are what it may wait for.
    ...['session', 'action', 'terminal', 'team'],
  ])
}

/** Not of the audit: its terminal, or whatever it shows instead, shows something else. */
export function screenTopic(agent: string): string {
  return `screen:${agent}`
}

/** Tells of what the audit does not tell of, while its view is looked at; under this topic. */
export function useChanges(of: 'github' | 'moderation'): string {
  const room = useRoom()
  const topic = `changes:${of}`
  useEffect(
    () =>
      whileSeen(async (signal) => {
        for await (const _ of room.client.changes(of, { signal })) room.touch(topic)
      }),
    [room, of, topic],
  )
  return topic
}

export function useLink(): Link {
  const room = useRoom()
  return useSyncExternalStore(room.subscribe, room.link)
}

export function useRecent(): readonly Entry[] {
  const room = useRoom()
  return useSyncExternalStore(room.subscribe, room.recent)
}

export function useEvents(reader: (entries: readonly Entry[]) => void) {
  const room = useRoom()
  useEffect(() => room.onEvents(reader), [room, reader])
}
