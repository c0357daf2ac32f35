import { conductTold, hasUntoldConduct } from '../store/conduct.ts'
import type { Queue } from './loop.ts'
import type { GithubParts } from './settings.ts'

const TIMEOUT_MS = 10_000
const FIRST_PAUSE_MS = 1000
const LONGEST_PAUSE_MS = 3600_000

/** Nothing of what a flag says leaves the service: only that moderators should look. */
const WORD = { text: 'There is something for moderators: orc moderation' }

/**
 * Calls moderators at an address of their own. Whether it could be reached stands in no log, for that would tell when
 * there was something (S3.15).
 */
export function createModerators(
  { store, clock, settings }: Pick<GithubParts, 'store' | 'clock' | 'settings'>,
  env: Readonly<Record<string, string | undefined>>,
): Queue {
  let pause = FIRST_PAUSE_MS
  let notBefore = 0

  const address = () => env[settings().moderatorsUrlEnv ?? ''] || undefined

  return {
    async next() {
      const url = address()
      if (url === undefined || clock.now() < notBefore || !(await hasUntoldConduct(store))) return false
      const until = clock.now()
      if (await callModerators(url)) {
        pause = FIRST_PAUSE_MS
        await store.write((tx) => conductTold(tx, until))
        return true
      }
      notBefore = clock.now() + pause
      pause = Math.min(pause * 2, LONGEST_PAUSE_MS)
      return false
    },
    async due() {
      return address() !== undefined && (await hasUntoldConduct(store)) ? notBefore : undefined
    },
  }
}

/** Says whether it was taken. */
export async function callModerators(url: string): Promise<boolean> {
  try {
    const answer = await fetch(url, {
      method: 'POST',
      redirect: 'manual',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(WORD),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    answer.body?.cancel().catch(() => {})
    return answer.ok
  } catch {
    return false
  }
}
