import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Principal } from '../../src/base/agent.ts'
import { openPostgresStore } from '../../src/store/postgres/open.ts'
import { type PostgresServer, startPostgres } from '../fakes/postgres-server.ts'
import { decide, openTestEngine } from '../harness/engine.ts'

let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server?.stop())

const person = (name: string): Principal => ({ kind: 'person', person: name })

it('counts simultaneous approvals, changes and verdicts correctly on PostgreSQL (C9)', async () => {
  const url = await server.createSchema()
  const engine = await openTestEngine(
    {
      agents: { Master: {}, Worker: {} },
      people: { ada: {}, ben: {}, cleo: {} },
      rules: { ask: [{ from: 'Worker', to: 'Master', approvers: ['ada', 'ben', 'cleo'], quorum: 2 }] },
    },
    { openStore: (options) => openPostgresStore(url, options) },
  )
  try {
    const arrived = async () => (await engine.mailOf('Master')).map(({ content }) => content)
    await engine.say('Worker', 'send_message', { to: 'Master', content: 'one' })
    const all = await Promise.allSettled(
      ['ada', 'ada', 'ben', 'cleo'].map((name) =>
        decide(engine, person(name), 'req_1', { decision: 'approve' }),
      ),
    )
    expect(all.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'rejected'])
    expect(await arrived()).toEqual(['one'])

    await engine.say('Worker', 'send_message', { to: 'Master', content: 'two' })
    await decide(engine, person('ada'), 'req_2', { decision: 'approve' })
    const { request } = await decide(engine, person('ben'), 'req_2', {
      decision: 'modify',
      fields: { content: 'three' },
    })
    expect(request).toMatchObject({ state: 'open', approvals: [{ by: 'ben' }] })
    await decide(engine, person('ada'), 'req_2', { decision: 'approve', hash: request.action!.hash })
    expect(await arrived()).toEqual(['one', 'three'])
  } finally {
    await engine.close()
  }
})
