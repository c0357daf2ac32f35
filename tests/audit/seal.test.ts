import { beforeAll, describe, expect, it } from 'vitest'
import { genesisHash, sealWith } from '../../src/audit/chain.ts'
import type { AuditDraft } from '../../src/audit/entry.ts'
import { openRedactor } from '../../src/audit/redact.ts'
import { verifyChain } from '../../src/audit/verify.ts'
import type { Seal } from '../../src/store/store.ts'
import { SECRET_SAMPLES } from './secret-samples.ts'

const head = { chain: 'main', seq: 0, hash: genesisHash('main') }
const time = Date.parse('2026-03-01T12:00:00.000Z')
const token = SECRET_SAMPLES.find((sample) => sample.rule === 'orchub-token')!.secret
const plain: AuditDraft = {
  type: 'a.b',
  class: 'public',
  actor: 'Worker',
  text: 'plain',
  data: { id: 'msg_1' },
}

describe('sealWith', () => {
  let seal: Seal
  beforeAll(async () => {
    seal = sealWith(await openRedactor())
  })

  it('seals drafts one after the other onto the head (C12)', async () => {
    const first = await seal([plain, { ...plain, text: 'second' }], head, time)
    const second = await seal([plain], first.head, time + 1)
    const stored = [...first.entries, ...second.entries].map(({ entry, dataJson }) => ({
      ...entry,
      dataJson,
    }))
    expect(stored.map((entry) => entry.seq)).toEqual([1, 2, 3])
    expect(await verifyChain(stored, { chain: 'main', expectedHead: second.head })).toMatchObject({
      ok: true,
      count: 3,
    })
  })

  it('keeps the head when there is nothing to seal', async () => {
    expect(await seal([], head, time)).toEqual({ entries: [], head })
  })

  it('redacts every field, both in the store and for listeners (C12)', async () => {
    const draft = { ...plain, actor: token, subject: token, text: `say ${token}`, data: { [token]: [token] } }
    const { entries } = await seal([draft], head, time)
    expect(JSON.stringify(entries)).not.toContain(token)
    const mark = '[redacted:orchub-token]'
    expect(entries[0]!.entry).toMatchObject({
      actor: mark,
      subject: mark,
      text: `say ${mark}`,
      data: { [mark]: [mark] },
    })
    expect(entries[0]!.dataJson).toBe(JSON.stringify({ [mark]: [mark] }))
  })
})
