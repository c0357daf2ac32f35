import { hash, randomBytes } from 'node:crypto'
import type { Principal } from '../../base/agent.ts'
import type { Clock } from '../../base/clock.ts'

/** One-time codes that sign a browser in. In memory: a service that was restarted knows none of them. */
export interface Logins {
  create(holder: Principal, token: string): { code: string; endsAt: number }
  /** Who may sign in with it, this once. */
  redeem(code: string): { holder: Principal; token: string } | undefined
}

const LASTS_MS = 5 * 60_000
const CODE_BYTES = 32
/** Whoever asks for more has forgotten the first ones. */
const MOST = 100

export function createLogins(clock: Pick<Clock, 'now'>): Logins {
  const open = new Map<string, { holder: Principal; token: string; endsAt: number }>()
  return {
    create(holder, token) {
      const now = clock.now()
      for (const [key, { endsAt }] of open) if (endsAt <= now || open.size >= MOST) open.delete(key)
      const code = randomBytes(CODE_BYTES).toString('base64url')
      const endsAt = now + LASTS_MS
      open.set(hash('sha256', code), { holder, token, endsAt })
      return { code, endsAt }
    },
    redeem(code) {
      const key = hash('sha256', code)
      const found = open.get(key)
      open.delete(key)
      return found === undefined || found.endsAt <= clock.now() ? undefined : found
    },
  }
}
