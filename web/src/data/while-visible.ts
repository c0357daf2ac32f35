import { ClientError } from '../../../src/client/client.ts'

/** After a fault that may pass. */
const AGAIN_MS = 1500
const NEVER = (): boolean => false

/**
 * Keeps a stream while the window is seen, and in it what one has taken over: a browser opens six connections to a
 * service at most, and a window that nobody sees must not keep one. Tried again after a fault that may pass; `onFault`
 * is told of every one.
 */
export function whileSeen(
  stream: (signal: AbortSignal) => Promise<void>,
  { holds = NEVER, onFault = (_: unknown) => {} } = {},
) {
  let open: AbortController | undefined
  async function keep(signal: AbortSignal) {
    while (!signal.aborted) {
      try {
        await stream(signal)
      } catch (error) {
        if (signal.aborted) return
        onFault(error)
        if (!(error instanceof ClientError && error.isTemporary)) return
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
      }
    }
  }
  const look = () => {
    if (document.hidden && !holds()) {
      open?.abort()
      open = undefined
    } else if (open === undefined) {
      open = new AbortController()
      void keep(open.signal)
    }
  }
  look()
  document.addEventListener('visibilitychange', look)
  return () => {
    document.removeEventListener('visibilitychange', look)
    open?.abort()
  }
}
