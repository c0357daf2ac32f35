import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import type { SessionState } from '../../base/agent.ts'
import type { AgentText, SessionPort, Usage } from '../../runtimes/runtime.ts'
import { createSeenIds } from '../seen-ids.ts'
import { type AppServer, AppServerRefused, AppServerUnanswered } from './app-server.ts'
import {
  AgentMessage,
  type CodexNotifications,
  type ItemEntry,
  type Thread,
  ThreadList,
  ThreadRead,
  ThreadResumed,
  type ThreadStatus,
  TurnPage,
} from './records.ts'
import { type Arrivals, type CodexTurns, positionOf, readSince } from './turns.ts'

/** Saved state: needed to find the program and its conversation again. */
export const CodexSavedState = z.object({
  /** Unix socket of its app-server. */
  socket: z.string(),
  launchedAt: z.number(),
  /**
   * Threads this agent had in its pane and that had a turn, the current one last: a message may be in an
   * earlier one.
   */
  threads: z.array(
    z.object({
      id: z.string(),
      /** Milliseconds. Earlier text is not this agent's: a fork copies, and a person may open any thread. */
      since: z.number(),
      /** Codex's file of the thread. */
      rollout: z.string().optional(),
    }),
  ),
  /** The item of the current thread up to which everything was processed. */
  saidUpTo: z.string().optional(),
})
export type CodexSavedState = z.output<typeof CodexSavedState>
export type CodexSavedThread = CodexSavedState['threads'][number]

const LOOK_MS = 250
const LOADING_LOOKS = 40
/** A thread is on disk, and can be subscribed to, shortly after its first turn began. */
const REATTACH_AFTER_MS = 20
const REMEMBERED_ITEMS = 2000
/** That a turn failed and why are reported separately, in any order. */
const ERROR_REPORT_MS = 500

interface ThreadFollowerOptions {
  readonly savedState: CodexSavedState
  save(savedState: CodexSavedState): Promise<void>
  become(state: SessionState, evidence: string): void
  readonly turns: CodexTurns
  readonly arrivals: Arrivals
  /** Passes on the agent's own text; `item` is its position in the thread. */
  say(agentText: AgentText & { readonly key: string }, item: string): void
  readonly used: SessionPort['onUsage']
  warn(fields: Record<string, unknown>, text: string): void
}

/**
 * Finds the thread in the pane, subscribes to it, and catches up on what it missed.
 * States: `searching` (no thread is known; each thread notification may end it), `adopting` (a thread was
 * found; its history is being read, and notifications wait behind it), `subscribed` (notifications are
 * processed as they come) and `closed` (final). A person who opens another conversation in the pane returns
 * it to `adopting`. The timeouts below cover gaps of the server: a thread is listed before it is ready, and
 * is on disk shortly after its first turn began.
 */
export function followThreads(options: ThreadFollowerOptions) {
  const { turns, arrivals } = options
  const { promise: found, resolve: isFound } = Promise.withResolvers<void>()
  let server: AppServer | undefined
  let current: CodexSavedThread | undefined
  let isListening = false
  let isAttaching = false
  let isAttachWanted = false
  let model: string | undefined
  /** Why the last turn failed, and the callers that wait for the reason. */
  let lastError = ''
  let errorReported = () => {}
  /** Number of status notifications of the thread. */
  let changes = 0
  /** Notifications wait while the history is being read. */
  let inOrder: Promise<unknown> = Promise.resolve()
  const isNew = createSeenIds(REMEMBERED_ITEMS)

  const failed = (what: string) => (error: unknown) => {
    if (!(error instanceof AppServerUnanswered && error.isLost)) options.warn({ err: error }, what)
  }

  function enqueue(step: () => void | Promise<void>) {
    inOrder = inOrder.then(step).catch(failed('a record from Codex could not be processed'))
  }

  async function search(on: AppServer) {
    while (server === on) {
      const thread = await chooseThread(on, options.savedState)
      if (thread !== undefined) return adopt(thread)
      await sleep(LOOK_MS)
    }
  }

  function adopt(thread: Thread) {
    const known = options.savedState.threads.find(({ id }) => id === thread.id)
    const since = isOfThisLaunch(thread, options.savedState) ? thread.createdAt * 1000 : Date.now()
    current = known ?? { id: thread.id, since }
    isListening = false
    lastError = ''
    isFound()
    void attach()
  }

  /** Both adopting a thread and the start of its first turn need it. */
  async function attach() {
    isAttachWanted = true
    if (isAttaching) return
    isAttaching = true
    while (isAttachWanted && !isListening && server !== undefined && current !== undefined) {
      isAttachWanted = false
      await listen(server, current).catch(failed("cannot subscribe to Codex's thread"))
    }
    isAttaching = false
  }

  async function listen(on: AppServer, thread: CodexSavedThread) {
    for (;;) {
      const before = changes
      try {
        const params = { threadId: thread.id, excludeTurns: true }
        const resumed = await on.request('thread/resume', params, ThreadResumed)
        if (server !== on || current?.id !== thread.id) return
        if (changes === before) show(resumed.thread.status)
        model = resumed.model
        isListening = true
        // From here on everything arrives by itself, after this.
        return enqueue(() => catchUp(on, thread, resumed.thread))
      } catch (error) {
        if (!(error instanceof AppServerRefused)) throw error
        // No turn yet, so nothing to read. With the first one this is retried until it works.
        const { status } = await readThread(on, thread.id)
        if (server !== on || current?.id !== thread.id) return
        if (changes === before) show(status)
        if (status.type !== 'active') return
        await sleep(REATTACH_AFTER_MS)
      }
    }
  }

  async function catchUp(on: AppServer, thread: CodexSavedThread, { path }: Thread) {
    const isKept = options.savedState.threads.at(-1)?.id === thread.id
    const position = isKept ? options.savedState.saidUpTo : undefined
    const entries = await readSince(on, thread.id, { position, time: thread.since })
    const rollout = path ?? thread.rollout
    const others = options.savedState.threads.filter(({ id }) => id !== thread.id)
    const threads = [...others, { ...thread, ...(rollout ? { rollout } : {}) }]
    await options
      .save({ ...options.savedState, threads, saidUpTo: position })
      .catch(failed("could not save Codex's conversation"))
    const page = await on.request('thread/turns/list', { threadId: thread.id, limit: 1 }, TurnPage)
    for (const entry of entries) handle(thread.id, entry)
    const last = page.data[0]
    if (last?.status === 'inProgress') turns.began(last.id)
    else if (last !== undefined) arrivals.ended(last)
    // If a turn has begun since the request, its notifications are newer.
    if (turns.active === undefined) lastError = last?.error?.message ?? lastError
  }

  function handle(threadId: string, entry: ItemEntry) {
    const position = positionOf(entry)
    if (!isNew(position)) return
    arrivals.saw(entry.turnId, entry.item)
    if (entry.item.type !== 'agentMessage') return
    const { text } = AgentMessage.parse(entry.item)
    if (text !== '') options.say({ text, channel: 'api', key: `codex:${threadId}:${position}` }, position)
  }

  /** Call it only if no notification arrived since the request: a notification can overtake a response. */
  function show(status: ThreadStatus) {
    const [state, evidence] = STATES[status.type](status)
    const why = status.type === 'systemError' && lastError !== '' ? `: ${lastError}` : ''
    options.become(state, evidence + why)
  }

  function noteError(reason: string) {
    lastError = reason
    errorReported()
  }

  async function errorKnown(): Promise<void> {
    if (lastError !== '') return
    const { promise, resolve } = Promise.withResolvers<void>()
    errorReported = resolve
    await Promise.race([promise, sleep(ERROR_REPORT_MS, undefined, { ref: false })])
  }

  /** A person began or opened another conversation in the pane. */
  async function switchTo(on: AppServer, threadId: string) {
    let thread = await readThread(on, threadId)
    for (let n = 0; n < LOADING_LOOKS && isPaneThread(thread) && thread.status.type === 'notLoaded'; n += 1) {
      await sleep(LOOK_MS)
      thread = await readThread(on, threadId)
    }
    if (server !== on || current?.id === threadId || !isPaneThread(thread)) return
    if (current !== undefined && isListening) {
      on.request('thread/unsubscribe', { threadId: current.id }, z.unknown()).catch(() => {})
    }
    adopt(thread)
  }

  const HANDLERS: { [M in keyof CodexNotifications]: (notice: CodexNotifications[M]) => void } = {
    error: ({ threadId, error, willRetry }) => {
      if (threadId === current?.id && !willRetry) noteError(error.message)
    },
    'thread/started': ({ thread }) => {
      if (current !== undefined && isPaneThread(thread)) switchLater(thread.id)
    },
    'thread/status/changed': ({ threadId, status }) => {
      if (current === undefined) return
      if (threadId !== current.id) {
        if (status.type === 'active') switchLater(threadId)
        return
      }
      changes += 1
      if (status.type === 'active') {
        show(status)
        void attach()
        return
      }
      // The turn's text comes before its end.
      const change = changes
      enqueue(async () => {
        if (status.type === 'systemError') await errorKnown()
        if (changes === change && current?.id === threadId) show(status)
      })
    },
    'thread/settings/updated': ({ threadId, threadSettings }) => {
      if (threadId === current?.id) model = threadSettings.model ?? model
    },
    'thread/tokenUsage/updated': (notice) => {
      if (notice.threadId === current?.id) options.used(usageOf(notice, model))
    },
    'turn/started': ({ threadId, turn }) => {
      if (threadId !== current?.id) return
      // An earlier error does not explain a failure of this turn.
      lastError = ''
      turns.began(turn.id)
    },
    'turn/completed': ({ threadId, turn }) => {
      if (threadId !== current?.id) return
      if (turn.error) noteError(turn.error.message)
      turns.ended(turn)
      enqueue(() => arrivals.ended(turn))
    },
    'item/started': ({ threadId, turnId, item }) => {
      if (threadId !== current?.id) return
      turns.itemBegan(turnId, item)
      // User text counts once it is recorded, which its completion shows.
      if (item.type !== 'userMessage') enqueue(() => arrivals.saw(turnId, item))
    },
    'item/completed': ({ threadId, turnId, item }) => {
      if (threadId !== current?.id) return
      turns.itemEnded(item)
      enqueue(() => handle(threadId, { turnId, item }))
    },
    'serverRequest/resolved': () => {},
  }

  function switchLater(threadId: string) {
    if (server === undefined) return
    switchTo(server, threadId).catch(failed('cannot read another thread of Codex'))
  }

  return {
    /** The thread in the pane. */
    get current() {
      return current?.id
    },
    found,
    connected(on: AppServer) {
      server = on
      search(on).catch(failed("cannot search for Codex's thread"))
    },
    disconnected() {
      server = undefined
      current = undefined
      isListening = false
      turns.forget()
    },
    notified: <M extends keyof CodexNotifications>(method: M, notice: CodexNotifications[M]) =>
      HANDLERS[method](notice),
  }
}

type ShownThread = readonly [SessionState, string]
const STATES: Record<ThreadStatus['type'], (status: ThreadStatus) => ShownThread> = {
  idle: () => ['idle', 'Codex: the thread is idle'],
  systemError: () => ['idle', 'Codex: the last turn failed'],
  notLoaded: () => ['unknown', 'Codex: the thread is not loaded'],
  active: (status) => {
    const flags = 'activeFlags' in status ? status.activeFlags : []
    return flags.length > 0
      ? ['waiting_input', `Codex: ${flags.join(', ')}`]
      : ['busy', 'Codex: a turn is running']
  },
}

/** Excludes Codex's own threads: those for titles, and those of agents it spawned (C4). */
function isPaneThread(thread: Thread): boolean {
  return !thread.ephemeral && !thread.parentThreadId
}

async function readThread(server: AppServer, threadId: string): Promise<Thread> {
  return (await server.request('thread/read', { threadId }, ThreadRead)).thread
}

/** The server's clock counts whole seconds. */
function isOfThisLaunch(thread: Thread, savedState: CodexSavedState): boolean {
  return (thread.createdAt + 1) * 1000 > savedState.launchedAt
}

/**
 * The conversation in the pane: the saved one, or a newer one that a person began there since. Undefined
 * while none is open, as during a question that Codex asks at its start.
 */
async function chooseThread(server: AppServer, savedState: CodexSavedState): Promise<Thread | undefined> {
  const wanted = savedState.threads.at(-1)?.id
  const { data } = await server.request('thread/loaded/list', {}, ThreadList)
  const loaded = await Promise.all(data.map((id) => readThread(server, id).catch(() => undefined)))
  return (
    loaded
      .filter((thread) => thread !== undefined)
      // A thread is listed before it is ready, and no notification follows.
      .filter((thread) => thread.status.type !== 'notLoaded')
      .filter(isPaneThread)
      .filter((thread) => thread.id === wanted || isOfThisLaunch(thread, savedState))
      .sort((one, other) => one.createdAt - other.createdAt || (one.id < other.id ? -1 : 1))
      .at(-1)
  )
}

/**
 * C26: tokens of the last answer relative to the model's window. Codex counts cached tokens as input, too.
 */
function usageOf(
  { threadId, tokenUsage }: CodexNotifications['thread/tokenUsage/updated'],
  model: string | undefined,
): Usage {
  const { total, last, modelContextWindow } = tokenUsage
  return {
    ...(model === undefined ? {} : { model }),
    contextTokens: last.inputTokens,
    ...(modelContextWindow ? { contextWindow: modelContextWindow } : {}),
    spent: {
      // A resume sends the same figures again; the sum grows only with an answer.
      key: `codex:${threadId}:${total.totalTokens}`,
      input: Math.max(0, last.inputTokens - last.cachedInputTokens - last.cacheWriteInputTokens),
      output: last.outputTokens,
      cacheRead: last.cachedInputTokens,
      cacheWrite: last.cacheWriteInputTokens,
    },
  }
}
