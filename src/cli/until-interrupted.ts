import { exitCode } from './exit-code.ts'

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
