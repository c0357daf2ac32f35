import { afterAll } from 'vitest'
import { openPostgresStore } from '../../src/store/postgres/open.ts'
import { startPostgres } from '../fakes/postgres-server.ts'
import { describeStore } from './conformance.ts'
import { createFixture } from './store-fixture.ts'

const server = await startPostgres()
afterAll(() => server.stop())

describeStore('PostgreSQL', async () => {
  const url = await server.createSchema()
  return createFixture((options) => openPostgresStore(url, options), {
    tamper: async (sql) => void (await server.query(sql, url)),
    clear: async () => {},
  })
})
