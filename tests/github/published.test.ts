/** Sends every example webhook that GitHub publishes through the real route (issue 6, §4). */
import { createRequire } from 'node:module'
import { describe, expect, it } from 'vitest'
import { routesOf } from '../../src/github/core/routing.ts'
import { openGithubTeam } from './harness.ts'

interface Example {
  readonly event: string
  readonly payload: Payload
}
type Payload = Record<string, unknown> & {
  action?: string
  sender?: { type?: string }
  comment?: unknown
  review?: { body?: string | null }
}

const load = createRequire(import.meta.url)

function examplesOf(edition: string): Example[] {
  const all = load(`@octokit/webhooks-examples/${edition}/index.json`) as {
    name: string
    examples: Payload[]
  }[]
  return all.flatMap(({ name, examples }) => examples.map((payload) => ({ event: name, payload })))
}

/** Replaces enumerated values, also deep in the payload, by values that GitHub may add one day (C19). */
const OPEN = new Set(['action', 'author_association', 'state', 'state_reason', 'type', 'active_lock_reason'])

function withNewWords(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withNewWords)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, part]) => [
      key,
      OPEN.has(key) && typeof part === 'string' ? `${part}_of_tomorrow` : withNewWords(part),
    ]),
  )
}

async function send(examples: readonly Example[]) {
  const team = await openGithubTeam({}, { events_per_minute: 100_000 })
  for (const [index, { event, payload }] of examples.entries()) {
    const body = JSON.stringify(payload)
    const delivery = `example-${index}`
    const answer = await team.fake.send(team.hookUrl(), event, {}, { body, delivery })
    expect(answer, `${event} ${payload.action}`).toMatchObject({ status: 202, json: { status: 'accepted' } })
  }
  await team.settled(60_000)
  const rows = await team
    .engine()
    .store.all<{ id: string; state: string; note: string | null; attempts: number }>(
      'SELECT id, state, note, attempts FROM github_deliveries',
    )
  const byId = new Map(rows.map((row) => [row.id, row]))
  const seen = examples.map((example, index) => ({ ...example, ...byId.get(`example-${index}`)! }))
  return { team, seen }
}

describe('every webhook that GitHub publishes', () => {
  it('is accepted, processed at the first attempt and routed by its type (S3.4, C19)', async () => {
    const { team, seen } = await send(examplesOf('api.github.com'))
    expect(seen.length).toBeGreaterThan(300)
    expect(seen.filter(({ state, attempts }) => state === 'failed' || attempts > 0)).toEqual([])
    expect(team.logged.filter((line) => line.startsWith('error'))).toEqual([])
    const routes = routesOf({ routes: {} })
    const isRouted = ({ event, payload }: Example) => Object.hasOwn(routes, `${event}.${payload.action}`)
    const ofMachines = ({ payload }: Example) =>
      payload.sender?.type === 'Bot' && (payload.comment ?? payload.review) !== undefined
    // A review without text; its comments are events of their own.
    const isSilent = ({ event, payload }: Example) => event === 'pull_request_review' && !payload.review?.body
    const routed = seen.filter((one) => isRouted(one) && !ofMachines(one))
    expect(routed.length).toBeGreaterThan(20)
    expect(routed.filter(({ state }) => state !== 'routed')).toEqual([])
    const work = await team
      .engine()
      .store.all<{ delivery: string; state: string }>('SELECT delivery, state FROM github_work')
    const given = routed.filter((one) => !isSilent(one))
    expect(new Set(work.map(({ delivery }) => delivery))).toEqual(new Set(given.map(({ id }) => id)))
    expect(work.filter(({ state }) => state !== 'done')).toEqual([])
  })

  it('is accepted in the version of Enterprise', async () => {
    const { team, seen } = await send(examplesOf('ghes-35'))
    expect(seen.filter(({ state, attempts }) => state === 'failed' || attempts > 0)).toEqual([])
    expect(team.logged.filter((line) => line.startsWith('error'))).toEqual([])
  })

  it("is accepted with enumerated values that don't exist yet (C19)", async () => {
    const examples = examplesOf('api.github.com').map(({ event, payload }) => ({
      event,
      payload: withNewWords(payload) as Payload,
    }))
    const { team, seen } = await send(examples)
    expect(seen.filter(({ state, attempts }) => state === 'failed' || attempts > 0)).toEqual([])
    expect(team.logged.filter((line) => line.startsWith('error'))).toEqual([])
  })
})
