import { watchFolder } from './folder-watch.ts'
import { numberOf, type ReceivedMessage } from './message-file.ts'
import { type Problem, problem, problemOf } from './problem.ts'
import { inOrder, MOST_MESSAGES, messageFiles, readMessage } from './queue.ts'
import { type Directory, lookAt } from './safe-fs/directory.ts'

export interface QueueWatchOptions {
  readonly folder: string
  /** Called once for each message that this watch has seen; a caller that restarts dedupes by name and `sha256`. */
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

interface Seen {
  readonly version: string | undefined
  /** The hash of the message, or why it is none. */
  readonly what: string
}

const AGAIN = [20, 50, 100, 200, 400, 800]

/** Follows the folder of a queue by file events. Messages come in the order of their numbers, as far as they are there. */
export function watchQueue({ folder, received, refused, again = AGAIN }: QueueWatchOptions): QueueWatch {
  /** The last content under each name: once a message is removed, another one may reuse its name. */
  const done = new Map<string, Seen>()
  const tries = new Map<string, number>()
  const timers = new Set<NodeJS.Timeout>()
  let closed = false
  let isOverLimit = false
  /** Names with a pending event: reading the whole folder for each message would be quadratic. */
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
      if (news === 'all') forgetAllBut(new Set(files))
      for (const file of files) if (!tries.has(file) && isNew(file)) take(file)
      isOverLimit = false
    } catch (error) {
      if (!isOverLimit) refused(problemOf(error, folder))
      isOverLimit = true
    }
  }

  function forgetAllBut(files: ReadonlySet<string>) {
    for (const file of done.keys()) if (!files.has(file)) done.delete(file)
  }

  function isNew(file: string): boolean {
    const version = versionOf(directory, file)
    if (version === undefined) done.delete(file)
    return version !== undefined && done.get(file)?.version !== version
  }

  function take(file: string) {
    // Looked at before it is read: what is written meanwhile is another version, and is read again.
    const version = versionOf(directory, file)
    const read = readMessage(directory, file)
    if (read.ok) {
      tries.delete(file)
      if (isOther(file, version, read.message.sha256)) received(read.message)
      return
    }
    // Taken away again, by whoever put it there.
    if (read.problem.code === 'missing') {
      tries.delete(file)
      done.delete(file)
      return
    }
    const count = tries.get(file) ?? 0
    const wait = again[count]
    if (wait === undefined) {
      tries.delete(file)
      if (isOther(file, version, read.problem.message)) refused(read.problem)
      return
    }
    tries.set(file, count + 1)
    const timer = setTimeout(() => {
      timers.delete(timer)
      if (!closed) take(file)
    }, wait)
    timers.add(timer)
  }

  /** A file that was only touched, or written again as it was, is nothing new. */
  function isOther(file: string, version: string | undefined, what: string): boolean {
    const before = done.get(file)?.what
    done.set(file, { version, what })
    return before !== what
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

/** Undefined: it is not there. */
function versionOf(directory: Directory, file: string): string | undefined {
  try {
    const found = lookAt(directory, file)
    return found === undefined ? undefined : `${found.ino}:${found.ctimeNs}`
  } catch {
    // The folder is closed to us: to read the file says why.
    return ''
  }
}
