import { createHmac } from 'node:crypto'
import { pauseAfter } from '../../base/backoff.ts'
import { openWorkOf } from '../store/work.ts'
import type { Members } from './members.ts'
import type { GithubParts } from './parts.ts'
import type { WorkQueue } from './queue-loop.ts'

const TIMEOUT_MS = 30_000
const MAX_BYTES = 102_400

interface PendingCallback {
  readonly agent: string
  readonly delegation: string
  attempts: number
  notBefore: number
}

/** Posts delegations to members with a callback URL. A message in the response counts as a message of the member. */
export function createCallbacks(
  { store, clock, settings, log }: GithubParts,
  members: Members,
  env: Readonly<Record<string, string | undefined>>,
): WorkQueue & { close(): void } {
  const closing = new AbortController()
  let pending: PendingCallback[] = []

  /** Pending callbacks live in memory; after a restart the open delegations are collected again. */
  async function collect() {
    for (const agent of Object.keys(settings().callbacks)) {
      if ((await openWorkOf(store, agent)).length === 0) continue
      for (const delegation of await members.next(agent, { waitMs: 0, signal: closing.signal }))
        pending.push({ agent, delegation, attempts: 0, notBefore: 0 })
    }
  }

  /** Returns why the delegation did not arrive. */
  async function post({ agent, delegation }: PendingCallback): Promise<string | undefined> {
    const { urlEnv, secretEnv } = settings().callbacks[agent]!
    const url = env[urlEnv]
    if (!url) return `${urlEnv} is not set`
    const secret = secretEnv === undefined ? undefined : env[secretEnv]
    if (secretEnv !== undefined && !secret) return `${secretEnv} is not set`
    const signature = secret ? createHmac('sha256', secret).update(delegation).digest('hex') : undefined
    const response = await fetch(url, {
      method: 'POST',
      redirect: 'manual',
      headers: {
        'content-type': 'application/json',
        ...(signature === undefined ? {} : { 'x-orchub-signature-256': `sha256=${signature}` }),
      },
      body: delegation,
      signal: AbortSignal.any([closing.signal, AbortSignal.timeout(TIMEOUT_MS)]),
    })
    if (!response.ok) {
      response.body?.cancel().catch(() => {})
      return `it answered with ${response.status}`
    }
    const said = (await response.text()).slice(0, MAX_BYTES + 1)
    // Any other body only confirms the receipt.
    if (!/^\s*[[{][\s\S]*"message_type"/.test(said)) return undefined
    await members
      .say(agent, said)
      .catch((error: unknown) =>
        log.warn({ agent, err: error }, 'refused the message in the response to a callback'),
      )
    return undefined
  }

  return {
    async next() {
      await collect()
      const callback = pending.find(({ notBefore }) => notBefore <= clock.now())
      if (callback === undefined) return false
      const problem = await post(callback).catch((error: unknown) =>
        error instanceof Error ? error.message : String(error),
      )
      const isOpen = (await openWorkOf(store, callback.agent)).some(
        ({ delegation }) => delegation === callback.delegation,
      )
      if (problem === undefined || !isOpen) pending = pending.filter((one) => one !== callback)
      else {
        callback.attempts += 1
        callback.notBefore = clock.now() + pauseAfter(callback.attempts)
        log.warn(
          { agent: callback.agent, problem },
          'cannot reach the callback of a GitHub team member; retrying',
        )
      }
      return true
    },
    async due() {
      return pending.length === 0 ? undefined : Math.min(...pending.map(({ notBefore }) => notBefore))
    },
    close: () => closing.abort(),
  }
}
