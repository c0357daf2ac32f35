import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { readHalt } from '../../src/halt/store.ts'
import { openPostgresStore } from '../../src/store/postgres/open.ts'
import { startPostgres } from '../fakes/postgres-server.ts'
import { createPuppets, type Puppets } from '../fakes/puppet-runtime.ts'
import { openTestEngine, type TestEngine } from '../harness/engine.ts'

const server = await startPostgres()
afterAll(() => server.stop())

const agent = { runtime: 'tmux' as const, program: 'any' as const, with: { command: 'true' } }

async function openDaemon(url: string, daemon: string, name: string, puppets: Puppets) {
  const engine = await openTestEngine(
    { agents: { [name]: agent } },
    {
      runtimes: [puppets],
      openStore: (options) =>
        openPostgresStore(url, { ...options, identity: { ...options.identity, daemon } }),
    },
  )
  await vi.waitFor(() => expect(puppets.started(name)).toBe(1))
  return engine
}

describe('a halt of two daemons on one database', () => {
  let engine: TestEngine
  let other: TestEngine
  let others: Puppets
  beforeEach(async () => {
    const url = await server.createSchema()
    others = createPuppets()
    engine = await openDaemon(url, 'first', 'Top', createPuppets())
    other = await openDaemon(url, 'second', 'Other', others)
    others.of('Other').become('busy')
  })
  afterEach(async () => {
    await engine.close()
    await other.close()
  })

  const isHalted = (one: TestEngine, by: string | undefined) =>
    vi.waitFor(() => expect(one.halt.current()?.by).toBe(by), { timeout: 5000 })

  it('applies to the agents of both, and either of them can end it', async () => {
    await engine.halt.stop('ada', 'runaway')
    await isHalted(other, 'ada')
    expect(others.of('Other').interrupts).toBe(1)
    expect(await other.say('Other', 'send_message', { to: 'Top', content: 'More' })).toMatchObject({
      code: 'HALTED',
    })
    await vi.waitFor(async () => expect((await readHalt(engine.store))?.agents).toContain('Other'))
    expect(await other.halt.go('ben')).toMatchObject({ told: ['Other'], halted: { by: 'ada' } })
    await isHalted(engine, undefined)
    await vi.waitFor(() => expect(others.of('Other').turns.at(-1)?.text).toContain('ben resumed the work'))
    // The agents of the second daemon learn too that the first one ended the halt.
    others.of('Other').become('busy')
    await other.halt.stop('ben', undefined)
    await isHalted(engine, 'ben')
    expect(await engine.halt.go('ada')).toMatchObject({ told: ['Other'] })
    await isHalted(other, undefined)
    await vi.waitFor(() => expect(others.of('Other').turns.at(-1)?.text).toContain('ada resumed the work'))
  })

  it('is one halt if both request it at once; the first reason counts', async () => {
    await Promise.all([engine.halt.stop('ada', 'one'), other.halt.stop('ben', 'two')])
    const [first, second] = [engine.halt.current(), other.halt.current()]
    expect(first).toEqual(second)
    expect(engine.halt.current()).toMatchObject({ by: (await readHalt(engine.store))!.halted_by })
    await engine.halt.go('ada')
    await isHalted(other, undefined)
  })

  it('is noticed although the listening connection was lost', async () => {
    await server.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'orchub second'`,
    )
    await engine.halt.stop('ada', undefined)
    await isHalted(other, 'ada')
  })
})
