import type { GitHubFailure } from '../core/failure.ts'

const QUIET = 'GitHub asked to be left alone for a while'

/**
 * When GitHub limits a credential, nothing more is asked with it until then: whoever goes on asking is limited for longer,
 * or banned. Limits are counted by what one proves oneself with, so that is what they are kept by.
 */
export function createSilence(now: () => number) {
  const until = new Map<string, number>()
  return {
    /** Undefined: one may ask. */
    left(credential: string): GitHubFailure | undefined {
      const left = (until.get(credential) ?? 0) - now()
      if (left <= 0) {
        until.delete(credential)
        return undefined
      }
      return { kind: 'limited', message: QUIET, retryAfterMs: left }
    },
    /** Two limits at once: the longer one holds. */
    note(credential: string, { retryAfterMs }: GitHubFailure): void {
      if (retryAfterMs === undefined) return
      until.set(credential, Math.max(until.get(credential) ?? 0, now() + retryAfterMs))
    },
  }
}
