import { hasNewConduct, markConductNotified } from '../store/conduct.ts'
import type { GithubParts } from './parts.ts'
import type { WorkQueue } from './queue-loop.ts'

const TIMEOUT_MS = 10_000
const FIRST_BACKOFF_MS = 1000
const MAX_BACKOFF_MS = 3600_000

/** The content of a flag never leaves the service. */
const NOTICE = { text: 'A flag needs a moderator: orc github moderation' }

/** Notifies moderators at their own URL. Logs nothing, because a log line would reveal that a flag exists (S3.15). */
export function createModeratorCalls(
  { store, clock, settings }: Pick<GithubParts, 'store' | 'clock' | 'settings'>,
  env: Readonly<Record<string, string | undefined>>,
): WorkQueue {
  let backoff = FIRST_BACKOFF_MS
  let notBefore = 0

  const address = () => env[settings().moderatorsUrlEnv ?? ''] || undefined

  return {
    async next() {
      const url = address()
      if (url === undefined || clock.now() < notBefore || !(await hasNewConduct(store))) return false
      const until = clock.now()
      if (await callModerators(url)) {
        backoff = FIRST_BACKOFF_MS
        await store.write((tx) => markConductNotified(tx, until))
        return true
      }
      notBefore = clock.now() + backoff
      backoff = Math.min(backoff * 2, MAX_BACKOFF_MS)
      return false
    },
    async due() {
      return address() !== undefined && (await hasNewConduct(store)) ? notBefore : undefined
    },
  }
}

async function callModerators(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      redirect: 'manual',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(NOTICE),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    response.body?.cancel().catch(() => {})
    return response.ok
  } catch {
    return false
  }
}
