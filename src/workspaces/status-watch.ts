import { basename } from 'node:path'
import { watchFolder } from './folder-watch.ts'
import { type Problem, problem } from './problem.ts'
import {
  FRESH_SHA256,
  readStatusIn,
  STATUS_FILE,
  type Status,
  statesBetween,
  type WorkspaceState,
} from './status.ts'

export type StatusNews =
  /** The agent is at work: `passed` holds the states it went through since the last news, in order. */
  | { kind: 'status'; status: Status; passed: readonly WorkspaceState[] }
  /** The file says what cannot follow; the state stays what it was (S4.3). */
  | { kind: 'refused'; from: WorkspaceState; to: WorkspaceState; message: string }
  /** Still not to be read after it was read again. */
  | { kind: 'unreadable'; problem: Problem }
  /** No more news will come. */
  | { kind: 'lost'; problem: Problem }

export interface StatusWatch {
  state(): WorkspaceState
  /** Reads now, for when something else has happened: a process has ended, or been silent for long. */
  look(): void
  close(): void
}

export interface StatusWatchOptions {
  readonly workspace: string
  /** The last known state: pending for a new attempt. */
  readonly from?: WorkspaceState
  /** The file is new and nothing has written to it, so there is nothing to read before the first event. */
  readonly isNew?: boolean
  news(news: StatusNews): void
  /** How long after a look that failed the next ones follow, in ms. An agent may write in pieces, or in two steps. */
  readonly again?: readonly number[]
}

const AGAIN = [20, 50, 100, 200, 400, 800]

/** A look that took long is not followed by the next one at once: a large file is written in many pieces. */
const REST_FACTOR = 10
const SHORT_LOOK_MS = 2

/**
 * Follows status.json by file events. The folder is watched and not the file, which may be replaced; every event leads
 * to one look at the file as it then is, and a look that finds nothing new says nothing. So it does not matter how many
 * events there are, and a file that cannot be read is looked at again a few times, and then reported once.
 */
export function watchStatus({
  workspace,
  from = 'pending',
  isNew = false,
  news,
  again = AGAIN,
}: StatusWatchOptions): StatusWatch {
  let state = from
  /** The initial content is no news. */
  let lastSeen = isNew ? FRESH_SHA256 : ''
  let lookSoon: NodeJS.Immediate | undefined
  let lookAfterRest: NodeJS.Timeout | undefined
  let notBefore = 0
  let closed = false
  /** While the file cannot be read: how often it was read again, and what has been said of it. */
  let tries = 0
  let nextTry: NodeJS.Timeout | undefined
  let reported: Problem['code'] | undefined

  // Watched first and read then, so that nothing falls between.
  const folder = watchFolder({
    folder: workspace,
    shown: '',
    heard(name) {
      // Events of the folder itself come under its own name.
      if (name === null || name === STATUS_FILE || name === basename(workspace)) schedule()
    },
    lost: lose,
  })
  if (!isNew) schedule()

  /** Events come in heaps; one look serves all that have come by then. */
  function schedule() {
    if (closed || lookSoon !== undefined) return
    const wait = notBefore - performance.now()
    if (wait <= 0) lookSoon = setImmediate(look)
    else lookAfterRest ??= setTimeout(look, wait)
  }

  function look() {
    clearImmediate(lookSoon)
    clearTimeout(lookAfterRest)
    lookSoon = lookAfterRest = undefined
    if (closed) return
    const began = performance.now()
    const read = readStatusIn(folder.directory)
    const took = performance.now() - began
    notBefore = took < SHORT_LOOK_MS ? 0 : began + took * REST_FACTOR
    if (!read.ok && read.problem.code === 'missing' && !folder.isStillThere())
      return lose('is not there any more')
    if (!read.ok) return cannotRead(read.problem)
    clearTimeout(nextTry)
    nextTry = reported = undefined
    tries = 0
    if (read.sha256 === lastSeen) return
    lastSeen = read.sha256
    const passed = statesBetween(state, read.status.state)
    if (passed === undefined) {
      const message = `${STATUS_FILE} went from ${state} to ${read.status.state}, which cannot follow`
      return news({ kind: 'refused', from: state, to: read.status.state, message })
    }
    state = read.status.state
    news({ kind: 'status', status: read.status, passed })
  }

  /** Tries go by the clock alone: an agent that writes a byte at a time uses none up, and one that never ends is told of. */
  function cannotRead(found: Problem) {
    if (nextTry !== undefined || reported === found.code) return
    const wait = again[tries]
    if (wait === undefined) {
      reported = found.code
      tries = 0
      lastSeen = ''
      return news({ kind: 'unreadable', problem: found })
    }
    nextTry = setTimeout(() => {
      nextTry = undefined
      tries++
      look()
    }, wait)
  }

  function lose(why: string) {
    if (closed) return
    close()
    news({ kind: 'lost', problem: problem('missing', workspace, why) })
  }

  function close() {
    if (closed) return
    closed = true
    clearImmediate(lookSoon)
    clearTimeout(lookAfterRest)
    clearTimeout(nextTry)
    folder.close()
  }

  return { state: () => state, look, close }
}
