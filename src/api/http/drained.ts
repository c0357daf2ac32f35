import type { ServerResponse } from 'node:http'

/** A reader that takes nothing for this long is given up: what it holds open costs everyone else. */
const STALL_MS = 60_000

/** Resolves when the reader took what was written, or when it is gone or given up; see `destroyed` then. */
export async function drained(outgoing: ServerResponse, signal?: AbortSignal): Promise<void> {
  if (!outgoing.writableNeedDrain || outgoing.destroyed || signal?.aborted === true) return
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(() => outgoing.destroy(), STALL_MS)
  const done = () => resolve()
  outgoing.once('drain', done)
  outgoing.once('close', done)
  signal?.addEventListener('abort', done, { once: true })
  try {
    await promise
  } finally {
    clearTimeout(timer)
    outgoing.off('drain', done)
    outgoing.off('close', done)
    signal?.removeEventListener('abort', done)
  }
}
