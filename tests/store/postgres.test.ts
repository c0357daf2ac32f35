import { afterAll } from 'vitest'
import { openPostgresStore } from '../../src/store/postgres/open.ts'
import { startPostgres } from '../fakes/postgres-server.ts'
import { describeStore } from './conformance.ts'
import { createPlace } from './place.ts'

const server = await startPostgres()
afterAll(() => server.stop())

describeStore('PostgreSQL', async () => {
  const url = await server.createSchema()
  return createPlace((options) => openPostgresStore(url, options), {
    tamper: async (sql) => void (await server.query(sql, url)),
    clear: async () => {},
  })
})
