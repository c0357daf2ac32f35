import { complain, ifTaken } from './output.ts'

export interface StopSignal {
  readonly promise: Promise<void>
  readonly came: () => boolean
}

/**
 * `npm start` and `timeout` pass a Ctrl-C on to a program that the terminal has told already, so that one press
 * comes twice. Nobody presses again in earnest before they have waited a little.
 */
const SAME_PRESS_MS = 2000

/** Watches from now on: the first SIGINT or SIGTERM asks to stop, a later one does not wait for that. */
export function watchStopSignal(): StopSignal {
  const { promise, resolve } = Promise.withResolvers<void>()
  let cameAt: number | undefined
  const stop = () => {
    if (cameAt === undefined) {
      cameAt = performance.now()
      ifTaken(() => complain('Stopping …; again to leave at once'))
      resolve()
    } else if (performance.now() - cameAt > SAME_PRESS_MS) process.exit(130)
  }
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)
  return { promise, came: () => cameAt !== undefined }
}
