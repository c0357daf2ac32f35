import { watchFolder } from './folder-watch.ts'
import type { ReceivedMessage } from './message-file.ts'
import { numberOf } from './message-file.ts'
import { type Problem, problem, problemOf } from './problem.ts'
import { inOrder, MOST_MESSAGES, messageFiles, readMessage } from './queue.ts'

export interface QueueWatchOptions {
  readonly folder: string
  /** Files that were received before: each is told of once. */
  isKnown(file: string): boolean
  received(message: ReceivedMessage): void
  /** A file that is no message even after it was read again; or, without a file, the queue itself. */
  refused(problem: Problem): void
  /** How long after a look that failed the next ones follow, in ms. */
  readonly again?: readonly number[]
}

export interface QueueWatch {
  look(): void
  close(): void
}

const AGAIN = [20, 50, 100, 200, 400, 800]

/** Follows the folder of a queue by file events. Messages come in the order of their numbers, as far as they are there. */
export function watchQueue({
  folder,
  isKnown,
  received,
  refused,
  again = AGAIN,
}: QueueWatchOptions): QueueWatch {
  const done = new Set<string>()
  const tries = new Map<string, number>()
  const timers = new Set<NodeJS.Timeout>()
  let closed = false
  let isOverLimit = false
  /** What there is news of. A look at all others for each message would take the longer the more there are. */
  let named: Set<string> | 'all' = 'all'
  const watched = watchFolder({
    folder,
    shown: 'messages',
    heard(name) {
      if (name !== null && numberOf(name) === undefined) return
      if (name === null) named = 'all'
      else if (named !== 'all') named.add(name)
      if (!closed) lookSoon ??= setImmediate(lookAtNews)
    },
    lost: (why) => refused(problem('missing', folder, why)),
  })
  const { directory } = watched
  let lookSoon: NodeJS.Immediate | undefined = setImmediate(lookAtNews)

  function look() {
    named = 'all'
    lookAtNews()
  }

  function lookAtNews() {
    clearImmediate(lookSoon)
    lookSoon = undefined
    if (closed) return
    const isFull = isOverLimit || done.size >= MOST_MESSAGES
    const news = isFull ? 'all' : named
    named = new Set()
    try {
      const files = news === 'all' ? messageFiles(directory) : inOrder([...news])
      for (const file of files) if (!done.has(file) && !tries.has(file)) take(file)
      isOverLimit = false
    } catch (error) {
      if (!isOverLimit) refused(problemOf(error, folder))
      isOverLimit = true
    }
  }

  function take(file: string) {
    if (isKnown(file)) return done.add(file)
    const read = readMessage(directory, file)
    if (read.ok) {
      tries.delete(file)
      done.add(file)
      return received(read.message)
    }
    // Taken away again, by whoever put it there.
    if (read.problem.code === 'missing') return tries.delete(file)
    const count = tries.get(file) ?? 0
    const wait = again[count]
    if (wait === undefined) {
      tries.delete(file)
      done.add(file)
      return refused(read.problem)
    }
    tries.set(file, count + 1)
    const timer = setTimeout(() => {
      timers.delete(timer)
      if (!closed) take(file)
    }, wait)
    timers.add(timer)
  }

  return {
    look,
    close() {
      if (closed) return
      closed = true
      clearImmediate(lookSoon)
      for (const timer of timers) clearTimeout(timer)
      watched.close()
    },
  }
}
