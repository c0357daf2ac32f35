import { createHmac } from 'node:crypto'
import { pauseAfter } from '../../base/backoff.ts'
import { openWorkOf } from '../store/work.ts'
import type { Queue } from './loop.ts'
import type { Members } from './members.ts'
import type { GithubParts } from './settings.ts'

const TIMEOUT_MS = 30_000
const MOST_BYTES = 102_400

interface Letter {
  readonly agent: string
  readonly delegation: string
  attempts: number
  notBefore: number
}

/** Brings delegations to members that have an address; an answer with a message in it is taken as theirs. */
export function createCallbacks(
  { store, clock, settings, log }: GithubParts,
  members: Members,
  env: Readonly<Record<string, string | undefined>>,
): Queue & { close(): void } {
  const closing = new AbortController()
  let letters: Letter[] = []

  /** Whatever is due for one of them is taken into our hands; after a restart it is due again. */
  async function collect() {
    for (const agent of Object.keys(settings().callbacks)) {
      if ((await openWorkOf(store, agent)).length === 0) continue
      for (const delegation of await members.next(agent, { waitMs: 0, signal: closing.signal }))
        letters.push({ agent, delegation, attempts: 0, notBefore: 0 })
    }
  }

  async function post({ agent, delegation }: Letter): Promise<string | undefined> {
    const { urlEnv, secretEnv } = settings().callbacks[agent]!
    const url = env[urlEnv]
    if (!url) return `${urlEnv} is not set`
    const secret = secretEnv === undefined ? undefined : env[secretEnv]
    if (secretEnv !== undefined && !secret) return `${secretEnv} is not set`
    const signature = secret ? createHmac('sha256', secret).update(delegation).digest('hex') : undefined
    const answer = await fetch(url, {
      method: 'POST',
      redirect: 'manual',
      headers: {
        'content-type': 'application/json',
        ...(signature === undefined ? {} : { 'x-orchub-signature-256': `sha256=${signature}` }),
      },
      body: delegation,
      signal: AbortSignal.any([closing.signal, AbortSignal.timeout(TIMEOUT_MS)]),
    })
    if (!answer.ok) {
      answer.body?.cancel().catch(() => {})
      return `it answered with ${answer.status}`
    }
    const said = (await answer.text()).slice(0, MOST_BYTES + 1)
    // Whoever answers later only says that it has it.
    if (!/^\s*[[{][\s\S]*"message_type"/.test(said)) return undefined
    await members
      .say(agent, said)
      .catch((error: unknown) =>
        log.warn({ agent, err: error }, 'what a member answered at once was not taken'),
      )
    return undefined
  }

  return {
    async next() {
      await collect()
      const letter = letters.find(({ notBefore }) => notBefore <= clock.now())
      if (letter === undefined) return false
      const problem = await post(letter).catch((error: unknown) =>
        error instanceof Error ? error.message : String(error),
      )
      const isOpen = (await openWorkOf(store, letter.agent)).some(
        ({ delegation }) => delegation === letter.delegation,
      )
      if (problem === undefined || !isOpen) letters = letters.filter((one) => one !== letter)
      else {
        letter.attempts += 1
        letter.notBefore = clock.now() + pauseAfter(letter.attempts)
        log.warn(
          { agent: letter.agent, problem },
          'a member of the GitHub team was not reached; it is tried again',
        )
      }
      return true
    },
    async due() {
      return letters.length === 0 ? undefined : Math.min(...letters.map(({ notBefore }) => notBefore))
    },
    close: () => closing.abort(),
  }
}
