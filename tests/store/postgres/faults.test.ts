import { inspect } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'
import { AppError } from '../../../src/base/errors.ts'
import { toStoreError } from '../../../src/store/postgres/fault.ts'
import { openPostgresStore } from '../../../src/store/postgres/open.ts'
import { readAddress } from '../../../src/store/postgres/session.ts'
import { startPostgres } from '../../fakes/postgres-server.ts'
import { storeOptions } from '../store-fixture.ts'

const server = await startPostgres()
afterAll(() => server.stop())

async function faultOf(url: string): Promise<AppError> {
  const outcome = await openPostgresStore(url, storeOptions({})).catch((error: unknown) => error)
  expect(outcome).toBeInstanceOf(AppError)
  return outcome as AppError
}

/** All parts of an error, including hidden ones and causes. */
const everything = (error: unknown) => inspect(error, { depth: 20, showHidden: true, getters: true })

const SECRET = 'hunter2secret'

describe('errors of PostgreSQL', () => {
  it('never contain the password', async () => {
    const { port } = server
    const wrong = [
      `postgres://orchub:${SECRET}@127.0.0.1:${port}/postgres`,
      `postgres://nobody:${SECRET}@127.0.0.1:${port}/postgres`,
      `postgres://orchub:${SECRET}@127.0.0.1:1/postgres`,
      `postgres://orchub:${SECRET}@127.0.0.1:99999/postgres`,
      `postgres://orchub:${SECRET}/x@127.0.0.1:${port}/postgres`,
      `postgres://orchub:1/${SECRET}@127.0.0.1:${port}/postgres`,
      `postgres://orchub:1#${SECRET}@127.0.0.1:${port}/postgres`,
      `postgres://orchub:%zz${SECRET}@127.0.0.1:${port}/postgres`,
      `mysql://orchub:${SECRET}@127.0.0.1:${port}/postgres`,
      SECRET,
    ]
    for (const url of wrong) expect(everything(await faultOf(url))).not.toContain(SECRET)
  })

  it('name a wrong password', async () => {
    expect(await faultOf(server.url().replace(/:[^:@]+@/, ':wrong@'))).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringContaining(`PostgreSQL at orchub@127.0.0.1:${server.port}/postgres rejects`),
      hint: expect.stringContaining('percent-encode'),
    })
  })

  it('name a missing database and how to create it', async () => {
    expect(await faultOf(server.url('nowhere'))).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringContaining('/nowhere does not exist'),
      hint: expect.stringContaining('createdb nowhere'),
    })
  })

  it('name a server that cannot be reached', async () => {
    expect(await faultOf('postgres://orchub@127.0.0.1:1/x')).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/127\.0\.0\.1:1\/x cannot be reached \(.*ECONNREFUSED/),
    })
  })

  it('name too many connections', async () => {
    await server.query(`CREATE ROLE few LOGIN PASSWORD 'few' CONNECTION LIMIT 1`)
    await server.query('CREATE DATABASE few OWNER few')
    expect(await faultOf(`postgres://few:few@127.0.0.1:${server.port}/few`)).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringContaining('accepts no more connections'),
    })
  })

  it('name a user without the right to create tables', async () => {
    await server.query(`CREATE ROLE guest LOGIN PASSWORD 'guest'`)
    expect(await faultOf(`postgres://guest:guest@127.0.0.1:${server.port}/postgres`)).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringContaining('does not give this user'),
      hint: expect.stringContaining('OWNER'),
    })
  })

  it('name a database whose encoding cannot store every text', async () => {
    await server.query(`CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0`)
    expect(await faultOf(server.url('latin'))).toMatchObject({
      code: 'CONFIG_INVALID',
      message: expect.stringContaining('LATIN1'),
    })
  })

  it.each([
    ['53100', 'STORE_FULL'],
    ['XX001', 'STORE_CORRUPT'],
    ['XX002', 'STORE_CORRUPT'],
    ['25006', 'STORE_UNAVAILABLE'],
    ['57P03', 'STORE_UNAVAILABLE'],
    ['08006', 'STORE_UNAVAILABLE'],
    ['EAI_AGAIN', 'STORE_UNAVAILABLE'],
  ])('are mapped by their code: %s is %s', (code, expected) => {
    const named = toStoreError('the server', Object.assign(new Error('as the server says'), { code }))
    expect(named).toMatchObject({ code: expected, message: expect.stringContaining('as the server says') })
    expect((named as AppError).hint).toBeTruthy()
  })

  it('stay unchanged if the user cannot fix them', () => {
    const fault = Object.assign(new Error('syntax error'), { code: '42601' })
    expect(toStoreError('the server', fault)).toBe(fault)
  })
})

describe('an address', () => {
  it('is shown without its password, with several hosts too', () => {
    const { server: shown } = readAddress('postgres://ada:s3cret@one:5433,two:5434/team?sslmode=require')
    expect(shown).toBe('PostgreSQL at ada@one:5433,two:5434/team')
  })

  it('that is invalid is refused with an example', () => {
    expect(() => readAddress('localhost:5432')).toThrow(
      expect.objectContaining({ code: 'CONFIG_INVALID', hint: expect.stringContaining('postgres://user') }),
    )
  })
})
