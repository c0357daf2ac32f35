import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  claimDeliveries,
  countQueued,
  moveDeliveries,
  releaseExpired,
} from '../../src/messages/delivery-states.ts'
import { PRIORITIES, type Priority } from '../../src/messages/message.ts'
import { insertMessage, type Mail, type MailboxFilter, readMailbox } from '../../src/messages/messages.ts'
import { type CrashingStore, openCrashingStore } from './crashing-store.ts'
import {
  acknowledge,
  boxOf,
  claim,
  expire,
  type MailboxModel,
  type ModelMail,
  query,
} from './mailbox-model.ts'
import { START, send, verifyAudit } from './store-fixture.ts'

type Step = fc.AsyncCommand<MailboxModel, CrashingStore>

const AGENTS = ['Ada', 'Bob', 'Cleo']
const agents = fc.constantFrom(...AGENTS)
const priorities = fc.constantFrom(...PRIORITIES)
const filters = fc.constantFrom<MailboxFilter>('all', 'unread', 'urgent')
/** Sizes below and above a page of the file. */
const contents = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.nat(9000).map((size) => 'x'.repeat(size)),
)

const told = (mails: readonly Mail[]) =>
  mails.map(({ id, content, priority, delivery, attempts }) => [id, content, priority, delivery, attempts])
const expected = (mails: readonly ModelMail[]) =>
  mails.map(({ key, content, priority, state, attempts }) => [
    `msg_${key}`,
    content,
    priority,
    state,
    attempts,
  ])

async function compareAll(model: MailboxModel, real: CrashingStore) {
  for (const agent of AGENTS) {
    expect(told(await readMailbox(real.store(), agent, 'all'))).toEqual(expected(boxOf(model, agent)))
    expect(await countQueued(real.store(), agent, 1000)).toBe(
      boxOf(model, agent).filter((mail) => mail.state === 'queued').length,
    )
  }
  expect(await verifyAudit(real.store())).toMatchObject({ ok: true, count: model.mails.length + model.moves })
}

function step(name: string, run: (model: MailboxModel, real: CrashingStore) => Promise<void>): Step {
  return { check: () => true, run, toString: () => name }
}

function accept(model: MailboxModel, key: number, to: string, content: string, priority: Priority) {
  expect(key).toBeGreaterThan(model.mails.at(-1)?.key ?? 0)
  model.mails.push({ key, to, content, priority, state: 'queued', attempts: 0, until: undefined })
}

const STEPS: fc.Arbitrary<Step>[] = [
  fc.tuple(agents, contents, priorities).map(([to, content, priority]) =>
    step(`send to ${to}: ${priority}, ${content.length} characters`, async (model, real) => {
      accept(model, await send(real.store(), { to, content, priority }), to, content, priority)
    }),
  ),
  fc
    .tuple(agents, fc.integer({ min: 1, max: 4 }), fc.boolean(), fc.constantFrom(5, 30))
    .map(([agent, limit, byPriority, waitMs]) =>
      step(
        `${agent} claims ${limit}${byPriority ? ' by priority' : ''} for ${waitMs} ms`,
        async (model, real) => {
          const mails = await real.store().write((tx) =>
            claimDeliveries(tx, {
              agent,
              limit,
              byPriority,
              until: tx.now + waitMs,
              evidence: 'poll',
              maxBytes: 1e9,
            }),
          )
          expect(told(mails)).toEqual(expected(claim(model, agent, { limit, byPriority, waitMs })))
          model.moves += mails.length
        },
      ),
    ),
  // Includes unknown messages, messages of other agents, repetitions, and messages that weren't handed out.
  fc.tuple(agents, fc.array(fc.integer({ min: 1, max: 30 }), { maxLength: 5 })).map(([agent, keys]) =>
    step(`${agent} acknowledges ${keys.join(', ') || 'nothing'}`, async (model, real) => {
      const moved = await real.store().write((tx) => moveDeliveries(tx, agent, keys, 'read', 'acknowledged'))
      expect(moved.sort((a, b) => a - b)).toEqual(acknowledge(model, agent, keys))
      model.moves += moved.length
    }),
  ),
  fc.integer({ min: 1, max: 20 }).map((ms) =>
    step(`${ms} ms pass`, async (model) => {
      model.now += ms
    }),
  ),
  agents.map((agent) =>
    step(`what ${agent} did not confirm in time goes back`, async (model, real) => {
      const { released, nextDue } = await real.store().write((tx) => releaseExpired(tx, agent))
      expect({ released: released.sort((a, b) => a - b), nextDue }).toEqual(expire(model, agent))
      model.moves += released.length
    }),
  ),
  fc.tuple(agents, filters, fc.nat(20), fc.integer({ min: 1, max: 6 })).map(([agent, filter, after, limit]) =>
    step(`${agent} reads ${limit} ${filter} after ${after}`, async (model, real) => {
      const page = { after, limit }
      const mails = await readMailbox(real.store(), agent, filter, page)
      expect(told(mails)).toEqual(expected(query(model, agent, filter, page)))
    }),
  ),
  fc.constant(
    step('a work fails half way', async (_, real) => {
      const failing = real.store().write(async (tx) => {
        await insertMessage(tx, { from: 'Ada', to: 'Bob', title: '', content: '', priority: 'low', hop: 0 })
        tx.audit({ type: 'mark.set', class: 'internal', actor: 'Ada', text: 'never' })
        throw new Error('half way')
      })
      await expect(failing).rejects.toThrow('half way')
    }),
  ),
  fc.constant(
    step('an orderly restart', async (model, real) => {
      await real.reopen()
      await compareAll(model, real)
    }),
  ),
  fc.constant(
    step('a crash between two commits', async (model, real) => {
      await real.revive(real.capture())
      await compareAll(model, real)
    }),
  ),
  fc.tuple(agents, contents).map(([to, content]) =>
    step('a crash in the middle of a transaction', async (model, real) => {
      let captured = ''
      await real.store().write(async (tx) => {
        await insertMessage(tx, { from: 'Ada', to, title: 't', content, priority: 'normal', hop: 0 })
        captured = real.capture()
      })
      await real.revive(captured)
      await compareAll(model, real)
    }),
  ),
  fc.tuple(agents, contents, fc.double({ min: 0, max: 1, noNaN: true })).map(([to, content, part]) =>
    step(`a crash when ${Math.round(part * 100)} % of a commit had reached the disk`, async (model, real) => {
      const before = real.logSize()
      const key = await send(real.store(), { to, content })
      await real.revive(real.capture(Math.round(before + (real.logSize() - before) * part)))
      // The commit wasn't confirmed, so the message may be stored or not, but never in part.
      const [there] = await readMailbox(real.store(), to, 'all', { after: key - 1, limit: 1 })
      if (there !== undefined) accept(model, key, to, content, 'normal')
      await compareAll(model, real)
    }),
  ),
]

describe('the mailbox of the SQLite store', () => {
  it('matches the model after any sequence of steps, including crashes (C1, C25, C27)', async () => {
    const runs = fc.asyncProperty(fc.commands(STEPS, { maxCommands: 60, size: 'max' }), async (steps) => {
      const model: MailboxModel = { now: START, mails: [], moves: 0 }
      const real = await openCrashingStore(() => model.now)
      try {
        await fc.asyncModelRun(() => ({ model, real }), steps)
        await compareAll(model, real)
      } finally {
        await real.close()
      }
    })
    // A failure prints the seed and the shortest steps that lead to it.
    await fc.assert(runs, { numRuns: 100, verbose: 1 })
  }, 60_000)
})
