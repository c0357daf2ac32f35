import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ChainPosition, genesisHash, hashEntry, sealEntry } from '../../src/audit/chain.ts'
import type { AuditDraft } from '../../src/audit/entry.ts'
import { drafts } from './chains.ts'

const place: ChainPosition = {
  chain: 'main',
  seq: 1,
  at: '2026-03-01T12:00:00.000Z',
  prev: genesisHash('main'),
}
const draft: AuditDraft = {
  type: 'message.accepted',
  class: 'internal',
  actor: 'Worker',
  subject: 'Master',
  text: 'Built — all green',
  confidence: 0.97,
  data: { id: 'msg_1', tags: ['a', 'b'] },
}
const bare: AuditDraft = { type: 'a.b', class: 'public', actor: 'operator', text: '' }

describe('sealEntry', () => {
  it('computes the same hash as ever, so that stored chains stay verifiable (C12)', () => {
    expect(genesisHash('main')).toBe('0d6e4079e36703ebd37c00722f5891d28b0e2811dc114b129215123adcce3605')
    expect(sealEntry(draft, place).entry.hash).toBe(
      'df5058dcf51e4cde5c46adc5e046f042727d164a0d6b0fdda681e13609db5b30',
    )
    expect(sealEntry(bare, place).entry.hash).toBe(
      '2c6a88b6843b639c9a375b0333af751249733d32aeace2db491bee4397b5ab5a',
    )
  })

  it('keeps every field of the draft and its position (S1.21)', () => {
    const { entry } = sealEntry(draft, place)
    expect(entry).toEqual({ ...draft, ...place, hash: entry.hash })
  })

  it('returns the data text that it hashed, an empty object for no data (C12)', () => {
    const { entry, dataJson } = sealEntry(draft, place)
    expect(dataJson).toBe('{"id":"msg_1","tags":["a","b"]}')
    expect(hashEntry(entry, dataJson, place.prev)).toBe(entry.hash)
    expect(sealEntry(bare, place).dataJson).toBe('{}')
  })

  it('hashes passed data verbatim, without parsing it (C12)', () => {
    const spaced = sealEntry(draft, place, '{"id": "msg_1"}')
    const tight = sealEntry(draft, place, '{"id":"msg_1"}')
    expect(spaced.dataJson).toBe('{"id": "msg_1"}')
    expect(spaced.entry.hash).not.toBe(tight.entry.hash)
  })

  it('treats an absent subject like a null one, because a store cannot distinguish them', () => {
    const { entry, dataJson } = sealEntry(bare, place)
    const read = { ...entry, subject: null, confidence: null }
    expect(hashEntry(read, dataJson, place.prev)).toBe(entry.hash)
  })

  it('detects text that moved from one field to another (C12)', () => {
    const split = (actor: string, text: string) => sealEntry({ ...draft, actor, text }, place).entry.hash
    expect(split('a","b', 'c')).not.toBe(split('a', 'b","c'))
    expect(split('a', '')).not.toBe(split('', 'a'))
  })

  it('seals only text that survives UTF-8 and PostgreSQL, so that it reads back as hashed (C12)', () => {
    fc.assert(
      fc.property(drafts, fc.string({ unit: 'binary' }), (some, hostile) => {
        const { entry } = sealEntry({ ...some, actor: hostile, subject: hostile, text: hostile }, place)
        for (const text of [entry.actor, entry.subject!, entry.text]) {
          expect(Buffer.from(text, 'utf8').toString('utf8')).toBe(text)
          expect(text).not.toContain('\0')
        }
      }),
    )
    expect(sealEntry({ ...draft, text: 'a\0b\ud800' }, place).entry.text).toBe('a\ufffdb\ufffd')
  })
})
