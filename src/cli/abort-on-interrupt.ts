import { AppError } from '../model/errors.ts'

/** Work that Ctrl-C calls off: it is brought to a state that can be told and gone on from, and not left where it is. */
export async function untilCalledOff<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const ending = new AbortController()
  const stop = () => ending.abort()
  process.on('SIGINT', stop).on('SIGTERM', stop)
  try {
    return await work(ending.signal)
  } catch (error) {
    if (!ending.signal.aborted) throw error
    throw new AppError('CONFLICT', 'It was called off', { hint: 'All is as it was before.', cause: error })
  } finally {
    process.off('SIGINT', stop).off('SIGTERM', stop)
  }
}
