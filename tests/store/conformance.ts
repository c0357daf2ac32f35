import { afterEach, beforeEach, describe } from 'vitest'
import { auditCases } from './conformance/audit.ts'
import { daemonCases } from './conformance/daemons.ts'
import { figureCases } from './conformance/figures.ts'
import { githubCases } from './conformance/github.ts'
import { lifecycleCases } from './conformance/lifecycle.ts'
import { mailboxCases } from './conformance/mailbox.ts'
import { recordCases } from './conformance/records.ts'
import { transactionCases } from './conformance/transactions.ts'
import type { Here, Place } from './place.ts'

/** What every engine must do. Each test gets a place of its own. */
export function describeStore(engine: string, createPlace: () => Promise<Place>) {
  describe(`the ${engine} store`, () => {
    let place: Place | undefined
    beforeEach(async () => {
      place = await createPlace()
    })
    afterEach(async () => {
      await place?.clear()
      place = undefined
    })
    const here: Here = () => place!

    describe('transactions', () => transactionCases(here))
    describe('audit', () => auditCases(here))
    describe('mailboxes', () => mailboxCases(here))
    describe('records', () => recordCases(here))
    describe('the GitHub team', () => githubCases(here))
    describe('figures', () => figureCases(here))
    describe('daemons', () => daemonCases(here))
    describe('opening and closing', () => lifecycleCases(here))
  })
}
