import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTraffic } from '../fakes/crash-traffic.ts'
import { createDaemon, type Daemon } from '../fakes/daemon.ts'
import { type PostgresServer, startPostgres } from '../fakes/postgres-server.ts'

const SENDERS = Array.from({ length: 25 }, (_, index) => `Sender${index + 1}`)
const CONFIG = `
agents:
  Target: {}
  Other: {}
${SENDERS.map((name) => `  ${name}: {}`).join('\n')}
limits: { rate: off }
`

async function tokensOf(daemon: Daemon): Promise<Map<string, string>> {
  const tokens = new Map<string, string>()
  for (const name of SENDERS) tokens.set(name, await daemon.token(name))
  return tokens
}

/** Kills after a different number of acknowledgements in each cycle, so that it hits every phase. */
const killAfter = (cycle: number) => 1 + ((cycle * 37) % 120)

async function crashLoop(daemon: Daemon, cycles: number) {
  await daemon.start()
  const traffic = createTraffic(daemon, await tokensOf(daemon), 'Target')
  for (let cycle = 0; cycle < cycles; cycle++) {
    await traffic.run(killAfter(cycle), () => daemon.kill())
    await daemon.start()
    if (cycle % 10 === 9 || cycle === cycles - 1) {
      expect(traffic.problems(await daemon.mailbox('Target')), `after kill ${cycle + 1}`).toEqual([])
    }
  }
  const { body } = await daemon.call('GET', '/api/v1/audit/verify', daemon.operatorToken())
  expect(body).toMatchObject({ ok: true })
  expect(traffic.acknowledged()).toBeGreaterThan(cycles * 10)
}

describe('kill -9 on SQLite', () => {
  let daemon: Daemon
  beforeAll(async () => {
    daemon = await createDaemon(CONFIG)
  })
  afterAll(() => daemon.close())

  it('loses, duplicates and reorders no acknowledged message in 100 kills, and the audit verifies (C25)', async () => {
    await crashLoop(daemon, 100)
  })
})

async function killBackends(server: PostgresServer) {
  await server.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'`,
  )
}

describe('PostgreSQL', () => {
  let server: PostgresServer
  let daemon: Daemon
  beforeAll(async () => {
    server = await startPostgres({ durable: true })
    daemon = await createDaemon(`${CONFIG}store: { url: '${await server.createDatabase()}' }\n`)
  })
  afterAll(async () => {
    await daemon.close()
    await server.stop()
  })

  it('keeps the same promise when the service is killed', async () => {
    await crashLoop(daemon, 10)
  })

  it('keeps it when the database backend is killed during sends, without a restart of the service', async () => {
    const traffic = createTraffic(daemon, await tokensOf(daemon), 'Other')
    for (let round = 0; round < 10; round++) {
      await traffic.run(killAfter(round), () => killBackends(server))
    }
    await traffic.run(50, async () => {})
    expect(traffic.problems(await daemon.mailbox('Other'))).toEqual([])
    const { body } = await daemon.call('GET', '/api/v1/audit/verify', daemon.operatorToken())
    expect(body).toMatchObject({ ok: true })
  })
})
