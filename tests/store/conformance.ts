import { afterEach, beforeEach, describe } from 'vitest'
import { auditCases } from './conformance/audit.ts'
import { daemonCases } from './conformance/daemons.ts'
import { figureCases } from './conformance/figures.ts'
import { githubCases } from './conformance/github.ts'
import { lifecycleCases } from './conformance/lifecycle.ts'
import { mailboxCases } from './conformance/mailbox.ts'
import { recordCases } from './conformance/records.ts'
import { transactionCases } from './conformance/transactions.ts'
import type { CurrentFixture, StoreFixture } from './store-fixture.ts'

/** The cases that every engine must pass. Each test gets a store of its own. */
export function describeStore(engine: string, createFixture: () => Promise<StoreFixture>) {
  describe(`the ${engine} store`, () => {
    let current: StoreFixture | undefined
    beforeEach(async () => {
      current = await createFixture()
    })
    afterEach(async () => {
      await current?.clear()
      current = undefined
    })
    const fixture: CurrentFixture = () => current!

    describe('transactions', () => transactionCases(fixture))
    describe('audit', () => auditCases(fixture))
    describe('mailboxes', () => mailboxCases(fixture))
    describe('records', () => recordCases(fixture))
    describe('the GitHub team', () => githubCases(fixture))
    describe('figures', () => figureCases(fixture))
    describe('daemons', () => daemonCases(fixture))
    describe('opening and closing', () => lifecycleCases(fixture))
  })
}
