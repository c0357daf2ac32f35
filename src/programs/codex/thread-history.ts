import { messageIdsIn } from '../message-ids.ts'
import type { AppServer } from './app-server.ts'
import { textOf } from './arrivals.ts'
import { type ItemEntry, ItemPage, UserMessage } from './records.ts'

const PAGE = 100

/** Newest first, page by page, as far as the caller reads. */
async function* backwards(server: AppServer, threadId: string): AsyncGenerator<ItemEntry> {
  let cursor: string | null | undefined
  do {
    const params = { threadId, sortDirection: 'desc', limit: PAGE, ...(cursor ? { cursor } : {}) }
    const page = await server.request('thread/items/list', params, ItemPage)
    yield* page.data
    cursor = page.nextCursor
  } while (cursor)
}

export function placeOf({ turnId, item }: ItemEntry): string {
  return `${turnId}/${item.id}`
}

interface Since {
  /** The last known item. */
  readonly place: string | undefined
  readonly time: number
}

/** Items of the thread since then, oldest first. */
export async function readSince(server: AppServer, threadId: string, since: Since): Promise<ItemEntry[]> {
  const entries: ItemEntry[] = []
  for await (const entry of backwards(server, threadId)) {
    const time = entry.item.completedAtMs ?? Number.POSITIVE_INFINITY
    if (placeOf(entry) === since.place || time < since.time) break
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
  for await (const { item } of backwards(server, threadId)) {
    if (item.type !== 'userMessage') continue
    const met = messageIdsIn(textOf(UserMessage.parse(item).content)).filter((id) => ids.has(id))
    for (const id of met) found.set(id, item.id)
    if (found.size === ids.size) break
  }
  return found
}
