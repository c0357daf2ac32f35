import { AppError } from '../base/errors.ts'
import { exitCode } from './exit-code.ts'
import { complain, ifTaken } from './output/print.ts'

/** `hangup`: the terminal is gone, and whoever sat there has not said a word about the agents. */
export type StopReason = 'asked' | 'hangup'

export interface StopSignal {
  readonly promise: Promise<StopReason>
  /** Aborts with the first signal. */
  readonly signal: AbortSignal
}

/**
 * `npm start` and `timeout` pass a Ctrl-C on to a program that the terminal has told already, so that one press
 * comes twice. Nobody presses again in earnest before they have waited a little.
 */
const SAME_PRESS_MS = 2000

/** Watches from now on: the first SIGINT, SIGTERM or SIGHUP asks to stop, a later one does not wait for that. */
export function watchStopSignal(): StopSignal {
  const { promise, resolve } = Promise.withResolvers<StopReason>()
  const coming = new AbortController()
  let cameAt: number | undefined
  const stopBy = (reason: StopReason) => () => {
    if (cameAt === undefined) {
      cameAt = performance.now()
      ifTaken(() => complain('Stopping …; again to leave at once'))
      resolve(reason)
      coming.abort()
    } else if (performance.now() - cameAt > SAME_PRESS_MS) process.exit(130)
  }
  process.on('SIGINT', stopBy('asked'))
  process.on('SIGTERM', stopBy('asked'))
  process.on('SIGHUP', stopBy('hangup'))
  return { promise, signal: coming.signal }
}

/** Work that Ctrl-C calls off: it is brought to a state that can be told and gone on from, and not left where it is. */
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

/** Follows something until Ctrl-C, which ends it quietly. */
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
