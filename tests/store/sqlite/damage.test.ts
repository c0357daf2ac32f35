import { readFileSync, writeFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { AppError } from '../../../src/base/errors.ts'
import { claimDeliveries, moveDeliveries } from '../../../src/messages/delivery-states.ts'
import { type Mail, readMailbox } from '../../../src/messages/messages.ts'
import type { Store } from '../../../src/store/store.ts'
import { createSqliteFixture, type SqliteFixture } from '../sqlite-fixture.ts'
import { send } from '../store-fixture.ts'

let fixture: SqliteFixture
beforeEach(async () => {
  fixture = await createSqliteFixture()
})
afterEach(() => fixture.clear())

const AGENTS = ['Bob', 'Cleo']
const FLIPS = 400

async function fill(store: Store) {
  for (let count = 0; count < 80; count++) {
    const content = `content ${count} ${'lorem ipsum '.repeat(10)}`
    await send(store, { to: AGENTS[count % 2]!, content, correlation: 1 + (count % 3) })
  }
  const claim = { agent: 'Bob', until: 1, evidence: 'poll', limit: 6, maxBytes: 100_000 }
  await store.write((tx) => claimDeliveries(tx, claim))
  await store.write((tx) => moveDeliveries(tx, 'Bob', [2, 4, 6], 'read', 'acknowledged'))
}

async function readAll(store: Store): Promise<Mail[]> {
  const boxes = []
  for (const agent of AGENTS) boxes.push(await readMailbox(store, agent, 'all'))
  // Readers get the evidence from the sealed audit; the copy in the row is unused.
  return boxes.flat().map(({ evidence: _, ...mail }) => mail)
}

describe('a flipped bit in the file', () => {
  it('is reported as damage, found by the check, or harmless, and never reaches a reader', async () => {
    const store = await fixture.open()
    await fill(store)
    const original = await readAll(store)
    await store.close()
    const bytes = readFileSync(fixture.file)

    const outcomes = { refused: 0, found: 0, harmless: 0 }
    for (let flip = 0; flip < FLIPS; flip++) {
      const damaged = Buffer.from(bytes)
      // Spread over the file, and over the bits of a byte.
      const at = Math.floor((flip * bytes.length) / FLIPS) + ((flip * 37) % 200)
      damaged[at]! ^= 1 << (flip % 8)
      writeFileSync(fixture.file, damaged)
      const outcome = await tryReading(original)
      expect(outcome, `bit ${flip % 8} of byte ${at}`).not.toBe('served')
      outcomes[outcome as keyof typeof outcomes]++
    }
    expect(outcomes.refused).toBeGreaterThan(FLIPS / 20)
    expect(outcomes.found).toBeGreaterThan(0)
  })
})

async function tryReading(original: Mail[]): Promise<'refused' | 'found' | 'harmless' | 'served'> {
  let store: Store | undefined
  try {
    store = await fixture.open()
    const problems = await store.check()
    const mails = await readAll(store)
    if (problems.length > 0) return 'found'
    return JSON.stringify(mails) === JSON.stringify(original) ? 'harmless' : 'served'
  } catch (error) {
    expect((error as AppError).code).toMatch(/^STORE_(CORRUPT|NEWER)$/)
    return 'refused'
  } finally {
    await store?.close()
  }
}
