import { AppError } from '../base/errors.ts'
import { exitCode } from './errors.ts'
import { complain, tryWrite } from './output/print.ts'

/** `hangup`: the terminal closed, which says nothing about whether the agents should stop. */
type StopReason = 'asked' | 'hangup'

interface StopSignal {
  readonly promise: Promise<StopReason>
  /** Aborts with the first signal. */
  readonly signal: AbortSignal
}

/**
 * `npm start` and `timeout` forward a Ctrl-C that the terminal already sent to the whole group, so one press arrives
 * twice. A second signal within this time counts as the same press; people wait longer before they press again.
 */
const SAME_PRESS_MS = 2000

/** The first SIGINT, SIGTERM or SIGHUP asks to stop; a later one exits at once. */
export function watchStopSignal(): StopSignal {
  const { promise, resolve } = Promise.withResolvers<StopReason>()
  const coming = new AbortController()
  let cameAt: number | undefined
  const stopBy = (reason: StopReason) => () => {
    if (cameAt === undefined) {
      cameAt = performance.now()
      tryWrite(() => complain('Stopping … (press Ctrl-C again to exit at once)'))
      resolve(reason)
      coming.abort()
    } else if (performance.now() - cameAt > SAME_PRESS_MS) process.exit(130)
  }
  process.on('SIGINT', stopBy('asked'))
  process.on('SIGTERM', stopBy('asked'))
  process.on('SIGHUP', stopBy('hangup'))
  return { promise, signal: coming.signal }
}

/**
 * Aborts with the first SIGINT or SIGTERM, so that the command can undo what it began, or leave what it watches. A second
 * one ends the process, in case a call ignores the abort.
 */
export function abortOnSignal(): AbortController {
  const stopping = new AbortController()
  const stop = () => stopping.abort()
  process.once('SIGINT', stop).once('SIGTERM', stop)
  return stopping
}

/** Runs work that Ctrl-C aborts through its signal. */
export async function untilCancelled<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const { signal } = abortOnSignal()
  try {
    return await work(signal)
  } catch (error) {
    if (!signal.aborted) throw error
    throw new AppError('CONFLICT', 'Interrupted', { hint: 'Nothing was changed.', cause: error })
  }
}

/** Follows a stream until Ctrl-C, which ends it without an error. */
export async function untilInterrupted(follow: (signal: AbortSignal) => Promise<void>): Promise<number> {
  const { signal } = abortOnSignal()
  try {
    await follow(signal)
  } catch (error) {
    if (!signal.aborted) throw error
  }
  return exitCode(signal.aborted ? 'interrupted' : 'ok')
}
