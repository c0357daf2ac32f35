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
