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

/** Runs work that Ctrl-C aborts through its signal, so that the work can undo what it began. */
export async function untilCancelled<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const ending = new AbortController()
  const stop = () => ending.abort()
  process.on('SIGINT', stop).on('SIGTERM', stop)
  try {
    return await work(ending.signal)
  } catch (error) {
    if (!ending.signal.aborted) throw error
    throw new AppError('CONFLICT', 'Interrupted', { hint: 'Nothing was changed.', cause: error })
  } finally {
    process.off('SIGINT', stop).off('SIGTERM', stop)
  }
}

/** Follows a stream until Ctrl-C, which ends it without an error. */
export async function untilInterrupted(follow: (signal: AbortSignal) => Promise<void>): Promise<number> {
  const ending = new AbortController()
  const stop = () => ending.abort()
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
  try {
    await follow(ending.signal)
  } catch (error) {
    if (!ending.signal.aborted) throw error
  }
  return ending.signal.aborted ? exitCode('interrupted') : exitCode('ok')
}
