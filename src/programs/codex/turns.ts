import type { DeliveryResult, SessionPort } from '../../runtimes/runtime.ts'
import { messageIdsIn } from '../message-evidence.ts'
import type { AppServer } from './app-server.ts'
import {
  CommandExecution,
  type Item,
  type ItemEntry,
  ItemPage,
  type TurnRecord,
  UserMessage,
} from './records.ts'

export type CodexTurns = ReturnType<typeof createTurns>

/** The running turn, its running commands, and how turns end. */
export function createTurns() {
  let active: string | undefined
  let lastEnded: string | undefined
  const waiting = new Map<string, ((turn: TurnRecord) => void)[]>()
  const open = new Map<string, { turnId: string; item: Item }>()
  /** By turn, in the order of the requests. */
  const terminals = new Map<string, Set<string>>()

  return {
    get active() {
      return active
    },
    began(turnId: string) {
      // A list of turns can be overtaken by the notification of a turn's end.
      if (turnId !== lastEnded) active = turnId
    },
    /** No notification for a while. */
    forget() {
      active = undefined
      open.clear()
      terminals.clear()
    },
    ended(turn: TurnRecord) {
      lastEnded = turn.id
      if (active === turn.id) active = undefined
      for (const resolve of waiting.get(turn.id) ?? []) resolve(turn)
      waiting.delete(turn.id)
      terminals.delete(turn.id)
    },
    /** How that turn ends; never resolves for a turn that is not running. */
    untilEnded(turnId: string): Promise<TurnRecord> {
      return new Promise((resolve) => waiting.set(turnId, [...(waiting.get(turnId) ?? []), resolve]))
    },
    itemBegan(turnId: string, item: Item) {
      open.set(item.id, { turnId, item })
      const terminal = terminalOf(item)
      if (terminal !== undefined) terminals.get(turnId)?.add(terminal)
    },
    itemEnded: (item: Item) => void open.delete(item.id),
    /** An item that has started and not ended. */
    item: (id: string) => open.get(id)?.item,
    /**
     * Terminals of this turn's running commands, and of those it starts from now on: a notification may be
     * under way.
     */
    terminalsOf(turnId: string): ReadonlySet<string> {
      const known = terminals.get(turnId) ?? new Set<string>()
      terminals.set(turnId, known)
      for (const { turnId: of, item } of open.values()) {
        const terminal = of === turnId ? terminalOf(item) : undefined
        if (terminal !== undefined) known.add(terminal)
      }
      return known
    },
  }
}

function terminalOf(item: Item): string | undefined {
  if (item.type !== 'commandExecution') return undefined
  return CommandExecution.safeParse(item).data?.processId ?? undefined
}

/** Items that only the model produces. Compactions, hooks and a person's own commands are not answers. */
const MODEL_ITEMS = new Set([
  'agentMessage',
  'reasoning',
  'plan',
  'commandExecution',
  'fileChange',
  'mcpToolCall',
  'dynamicToolCall',
  'collabAgentToolCall',
  'webSearch',
  'imageView',
])

export type Arrivals = ReturnType<typeof createArrivals>

/** Follows messages by id through a thread's records: accepted as user text, answered by the model. */
export function createArrivals(arrived: SessionPort['onEvidence']) {
  const expected = new Map<string, (result: DeliveryResult) => void>()
  /** Messages the model is working on, by turn. */
  const unanswered = new Map<string, string[]>()

  function read(turnId: string, evidence: string) {
    const ids = unanswered.get(turnId)
    if (ids === undefined) return
    unanswered.delete(turnId)
    arrived(ids, 'read', evidence)
  }

  function taken(turnId: string, item: Item) {
    const { clientId, content } = UserMessage.parse(item)
    const ids = messageIdsIn(textOf(content))
    const evidence = `Codex has it as user message ${item.id} of turn ${turnId}`
    if (ids.length > 0) {
      unanswered.set(turnId, [...(unanswered.get(turnId) ?? []), ...ids])
      arrived(ids, 'submitted', evidence)
    }
    if (clientId) expected.get(clientId)?.({ state: 'submitted', evidence })
  }

  return {
    /** Resolves when the message sent with that client id is in the thread. */
    expect(clientId: string): { taken: Promise<DeliveryResult>; forget(): void } {
      const { promise, resolve } = Promise.withResolvers<DeliveryResult>()
      expected.set(clientId, resolve)
      return { taken: promise, forget: () => expected.delete(clientId) }
    },
    /** An item started, or is in the thread's history. */
    saw(turnId: string, item: Item) {
      if (item.type === 'userMessage') taken(turnId, item)
      else if (isModelItem(item)) read(turnId, `Codex answered it with ${item.type} ${item.id}`)
    },
    /** The turn has ended. */
    ended({ id, status }: TurnRecord) {
      if (status === 'completed') read(id, `Codex completed turn ${id}`)
      // If a turn failed or was stopped before the model's first word, its messages stay unread.
      unanswered.delete(id)
    },
  }
}

function isModelItem(item: Item): boolean {
  if (item.type !== 'commandExecution') return MODEL_ITEMS.has(item.type)
  return CommandExecution.safeParse(item).data?.source !== 'userShell'
}

function textOf(content: readonly { text?: string | undefined }[]): string {
  return content.map(({ text }) => text ?? '').join('\n')
}

const PAGE = 100

/** Newest first, page by page, as far as the caller reads. */
async function* itemsNewestFirst(server: AppServer, threadId: string): AsyncGenerator<ItemEntry> {
  let cursor: string | null | undefined
  do {
    const params = { threadId, sortDirection: 'desc', limit: PAGE, ...(cursor ? { cursor } : {}) }
    const page = await server.request('thread/items/list', params, ItemPage)
    yield* page.data
    cursor = page.nextCursor
  } while (cursor)
}

export function positionOf({ turnId, item }: ItemEntry): string {
  return `${turnId}/${item.id}`
}

interface Since {
  /** The last known item. */
  readonly position: string | undefined
  readonly time: number
}

/** Items of the thread since then, oldest first. */
export async function readSince(server: AppServer, threadId: string, since: Since): Promise<ItemEntry[]> {
  const entries: ItemEntry[] = []
  for await (const entry of itemsNewestFirst(server, threadId)) {
    const time = entry.item.completedAtMs ?? Number.POSITIVE_INFINITY
    if (positionOf(entry) === since.position || time < since.time) break
    entries.push(entry)
  }
  return entries.reverse()
}

/** The user messages that contain these messages of ours, by id. */
export async function findMessages(
  server: AppServer,
  threadId: string,
  ids: ReadonlySet<string>,
): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>()
  for await (const { item } of itemsNewestFirst(server, threadId)) {
    if (item.type !== 'userMessage') continue
    const met = messageIdsIn(textOf(UserMessage.parse(item).content)).filter((id) => ids.has(id))
    for (const id of met) found.set(id, item.id)
    if (found.size === ids.size) break
  }
  return found
}
