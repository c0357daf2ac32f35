import type { AppServer } from './app-server.ts'
import type { Kept } from './kept.ts'
import { type Thread, ThreadList, ThreadRead } from './records.ts'

/** Not one of Codex's own: those it asks for titles in, and those of agents it spawned (C4). */
export function isOfThePane(thread: Thread): boolean {
  return !thread.ephemeral && !thread.parentThreadId
}

export async function readThread(server: AppServer, threadId: string): Promise<Thread> {
  return (await server.request('thread/read', { threadId }, ThreadRead)).thread
}

/** The server's clock counts whole seconds. */
export function isOfThisLaunch(thread: Thread, kept: Kept): boolean {
  return (thread.createdAt + 1) * 1000 > kept.launchedAt
}

/**
 * The conversation in the pane: the one that was kept, or a newer one that a person began there since. Undefined
 * while none is open, as before a question that Codex asks at its start.
 */
export async function chooseThread(server: AppServer, kept: Kept): Promise<Thread | undefined> {
  const wanted = kept.threads.at(-1)?.id
  const { data } = await server.request('thread/loaded/list', {}, ThreadList)
  const loaded = await Promise.all(data.map((id) => readThread(server, id).catch(() => undefined)))
  return (
    loaded
      .filter((thread) => thread !== undefined)
      // It is listed before it is ready, and nothing is told when it is.
      .filter((thread) => thread.status.type !== 'notLoaded')
      .filter(isOfThePane)
      .filter((thread) => thread.id === wanted || isOfThisLaunch(thread, kept))
      .sort((one, other) => one.createdAt - other.createdAt || (one.id < other.id ? -1 : 1))
      .at(-1)
  )
}
