import { ClientError } from '../../../src/client/client.ts'

const RETRY_MS = 1500
const NEVER = (): boolean => false

/**
 * Keeps a stream open while the window is visible, or while `holds` says that it is still needed. A browser opens at
 * most six connections to one service, so a hidden window must not occupy one. Temporary errors are retried; `onError`
 * hears of each.
 */
export function whileVisible(
  stream: (signal: AbortSignal) => Promise<void>,
  { holds = NEVER, onError = (_: unknown) => {} } = {},
) {
  let open: AbortController | undefined
  async function keepOpen(signal: AbortSignal) {
    while (!signal.aborted) {
      try {
        await stream(signal)
      } catch (error) {
        if (signal.aborted) return
        onError(error)
        if (!(error instanceof ClientError && error.isTemporary)) return
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
      }
    }
  }
  const update = () => {
    if (document.hidden && !holds()) {
      open?.abort()
      open = undefined
    } else if (open === undefined) {
      open = new AbortController()
      void keepOpen(open.signal)
    }
  }
  update()
  document.addEventListener('visibilitychange', update)
  return () => {
    document.removeEventListener('visibilitychange', update)
    open?.abort()
  }
}
