import fc from 'fast-check'
import { genesisHash, sealEntry } from '../../src/audit/chain.ts'
import { AUDIT_CLASSES, type AuditDraft } from '../../src/audit/entry.ts'
import type { StoredEntry } from '../../src/audit/verify.ts'

export const drafts: fc.Arbitrary<AuditDraft> = fc.record(
  {
    type: fc.constantFrom('message.accepted', 'command.blocked', 'agent.started'),
    class: fc.constantFrom(...AUDIT_CLASSES),
    actor: fc.constantFrom('Master', 'Worker', 'operator'),
    subject: fc.constantFrom('Master', 'Worker'),
    text: fc.string({ unit: 'binary' }),
    confidence: fc.double({ min: 0, max: 1, noNaN: true }),
    data: fc.dictionary(fc.string(), fc.jsonValue()) as fc.Arbitrary<Record<string, unknown>>,
  },
  { requiredKeys: ['type', 'class', 'actor', 'text'] },
)

/** A chain as a store keeps it: with or without the previous hash, with times as text or as numbers. */
export function storedChain(entries: readonly AuditDraft[], form: { prev: boolean; times: 'iso' | 'ms' }) {
  const stored: StoredEntry[] = []
  let prev = genesisHash('main')
  for (const [index, draft] of entries.entries()) {
    const time = 1_772_366_400_000 + index
    const place = { chain: 'main', seq: index + 1, at: new Date(time).toISOString(), prev }
    const { entry, dataJson } = sealEntry(draft, place)
    prev = entry.hash
    const { data: _, prev: before, ...fields } = entry
    const at = form.times === 'iso' ? entry.at : time
    stored.push({ ...fields, at, dataJson, ...(form.prev ? { prev: before } : {}) })
  }
  return stored
}

export const forms = fc.record({ prev: fc.boolean(), times: fc.constantFrom('iso' as const, 'ms' as const) })

export function chains(minLength: number): fc.Arbitrary<StoredEntry[]> {
  return fc
    .tuple(fc.array(drafts, { minLength, maxLength: 8 }), forms)
    .map(([some, form]) => storedChain(some, form))
}
