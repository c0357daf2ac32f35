import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { genesisHash, hashEntry } from '../../src/audit/chain.ts'
import { type StoredEntry, type VerifyOptions, verifyChain } from '../../src/audit/verify.ts'
import { chains, drafts, storedChain } from './chains.ts'

function markOf(entries: readonly StoredEntry[], seq = entries.length) {
  return { seq, hash: seq === 0 ? genesisHash('main') : entries[seq - 1]!.hash }
}

function verify(entries: readonly StoredEntry[], original = entries, more: Partial<VerifyOptions> = {}) {
  return verifyChain(entries, { chain: 'main', expectedHead: markOf(original), ...more })
}

/** A chain and the index of one entry of it. */
function chainsAndIndex(minLength = 1) {
  return chains(minLength).chain((entries) => fc.tuple(fc.constant(entries), fc.nat(entries.length - 1)))
}

const changes: Record<string, (entry: StoredEntry) => Partial<StoredEntry>> = {
  chain: () => ({ chain: 'other' }),
  at: ({ at }) => ({ at: typeof at === 'number' ? at + 1 : at.replace('2026', '2025') }),
  'at, beyond all dates': () => ({ at: 9e15 }),
  type: ({ type }) => ({ type: `${type}x` }),
  class: (entry) => ({ class: entry.class === 'public' ? 'private' : 'public' }),
  actor: ({ actor }) => ({ actor: actor === 'Master' ? 'Worker' : 'Master' }),
  subject: ({ subject }) => ({ subject: subject === undefined ? '' : undefined }),
  text: ({ text }) => ({ text: `${text} ` }),
  confidence: ({ confidence }) => ({ confidence: confidence === undefined ? 0 : null }),
  data: ({ dataJson }) => ({ dataJson: `${dataJson} ` }),
  hash: ({ hash }) => ({ hash: hash.replace(/^./, (digit) => (digit === '0' ? '1' : '0')) }),
  prev: () => ({ prev: genesisHash('other') }),
}

describe('verifyChain', () => {
  it('accepts an intact chain and returns its head (C12)', async () => {
    await fc.assert(
      fc.asyncProperty(chains(0), fc.nat(), async (entries, number) => {
        const witness = markOf(entries, number % (entries.length + 1))
        const verdict = await verify(entries, entries, { witness })
        expect(verdict).toEqual({ ok: true, count: entries.length, head: markOf(entries) })
      }),
    )
  })

  it.each(Object.keys(changes))('finds and names an entry whose %s was changed (C12)', async (field) => {
    await fc.assert(
      fc.asyncProperty(chainsAndIndex(), async ([entries, index]) => {
        const changed = entries.with(index, { ...entries[index]!, ...changes[field]!(entries[index]!) })
        expect(await verify(changed, entries)).toMatchObject({
          ok: false,
          seq: index + 1,
          problem: 'changed',
        })
      }),
      { numRuns: 40 },
    )
  })

  it('finds a changed number (C12)', async () => {
    await fc.assert(
      fc.asyncProperty(
        chainsAndIndex(),
        fc.oneof(fc.integer(), fc.double()),
        async ([entries, index], seq) => {
          fc.pre(seq !== index + 1)
          const verdict = await verify(entries.with(index, { ...entries[index]!, seq }), entries)
          expect(verdict.ok).toBe(false)
        },
      ),
    )
  })

  it('finds and names a removed entry (C12)', async () => {
    await fc.assert(
      fc.asyncProperty(chainsAndIndex(), async ([entries, index]) => {
        const problem = index === entries.length - 1 ? 'cut_off' : 'missing'
        const verdict = await verify(entries.toSpliced(index, 1), entries)
        expect(verdict).toMatchObject({ ok: false, seq: index + 1, problem })
      }),
    )
  })

  it('finds and names the first of two swapped entries (C12)', async () => {
    await fc.assert(
      fc.asyncProperty(chainsAndIndex(2), fc.nat(), async ([entries, index], number) => {
        const other = (index + 1 + (number % (entries.length - 1))) % entries.length
        const [first, second] = [Math.min(index, other), Math.max(index, other)]
        const swapped = entries.with(first, entries[second]!).with(second, entries[first]!)
        expect(await verify(swapped, entries)).toMatchObject({
          ok: false,
          seq: first + 1,
          problem: 'reordered',
        })
        const renumbered = swapped.map((entry, at) => ({ ...entry, seq: at + 1 }))
        expect(await verify(renumbered, entries)).toMatchObject({
          ok: false,
          seq: first + 1,
          problem: 'changed',
        })
      }),
    )
  })

  it('finds and names a duplicate entry (C12)', async () => {
    await fc.assert(
      fc.asyncProperty(chainsAndIndex(), fc.nat(), async ([entries, index], number) => {
        const place = index + 1 + (number % (entries.length - index))
        const verdict = await verify(entries.toSpliced(place, 0, entries[index]!), entries)
        expect(verdict).toMatchObject({ ok: false, seq: index + 1, problem: 'duplicate' })
      }),
    )
  })

  it('finds a cut-off end by the head alone and by the witness alone, and names the first entry lost (C12)', async () => {
    await fc.assert(
      fc.asyncProperty(chainsAndIndex(), async ([entries, length]) => {
        const cut = entries.slice(0, length)
        const expected = { ok: false, seq: length + 1, problem: 'cut_off' }
        expect(await verify(cut, entries)).toMatchObject(expected)
        // Here the head was set back together with the entries.
        expect(await verify(cut, cut, { witness: markOf(entries) })).toMatchObject(expected)
      }),
    )
  })

  it('finds a chain that was recomputed from some entry on, by the head or the witness (C12)', async () => {
    const recomputed = fc
      .tuple(fc.array(drafts, { minLength: 1, maxLength: 8 }), fc.nat(), fc.nat(), fc.boolean())
      .map(([some, first, witness, prev]) => {
        const index = first % some.length
        const forged = some.with(index, { ...some[index]!, text: `${some[index]!.text} forged` })
        const form = { prev, times: 'ms' as const }
        const seen = index + 1 + (witness % (some.length - index))
        return { entries: storedChain(some, form), forged: storedChain(forged, form), index, seen }
      })
    await fc.assert(
      fc.asyncProperty(recomputed, async ({ entries, forged, index, seen }) => {
        expect(await verify(forged, entries)).toMatchObject({ seq: entries.length, problem: 'rewritten' })
        const verdict = await verify(forged, forged, { witness: markOf(entries, seen) })
        expect(verdict).toMatchObject({ ok: false, seq: seen, problem: 'rewritten' })
        // Neither mark can reveal a forgery that is newer than the witness.
        expect(await verify(forged, forged, { witness: markOf(entries, index) })).toMatchObject({ ok: true })
      }),
    )
  })

  it('names an entry that was rewritten together with its hash, if entries store the previous hash (C12)', async () => {
    const entries = storedChain(fc.sample(drafts, { numRuns: 4, seed: 1 }), { prev: true, times: 'iso' })
    const forged = { ...entries[1]!, text: 'forged', at: String(entries[1]!.at) }
    const rewritten = entries.with(1, { ...forged, hash: hashEntry(forged, forged.dataJson, forged.prev!) })
    expect(await verify(rewritten, entries)).toMatchObject({ ok: false, seq: 2, problem: 'rewritten' })
  })

  it('refuses entries after the recorded head (C12)', async () => {
    const entries = storedChain(fc.sample(drafts, { numRuns: 4, seed: 2 }), { prev: false, times: 'ms' })
    const expectedHead = markOf(entries, 2)
    const verdict = await verifyChain(entries, { chain: 'main', expectedHead })
    expect(verdict).toMatchObject({ ok: false, seq: 3, problem: 'unrecorded' })
  })

  it('refuses a chain that begins another chain', async () => {
    const entries = storedChain(fc.sample(drafts, { numRuns: 2, seed: 3 }), { prev: true, times: 'iso' })
    expect(await verifyChain(entries, { chain: 'other' })).toMatchObject({ seq: 1, problem: 'changed' })
  })

  it('reads a stream, and stops reading it at the first bad entry', async () => {
    const entries = storedChain(fc.sample(drafts, { numRuns: 5, seed: 4 }), { prev: false, times: 'ms' })
    let read = 0
    let closed = false
    async function* stream() {
      try {
        for (const entry of entries.with(2, { ...entries[2]!, text: 'forged' })) {
          read++
          yield entry
        }
      } finally {
        closed = true
      }
    }
    const verdict = await verifyChain(stream(), { chain: 'main' })
    expect(verdict).toEqual({
      ok: false,
      seq: 3,
      problem: 'changed',
      message: 'Entry 3 does not match its hash',
    })
    expect({ read, closed }).toEqual({ read: 3, closed: true })
  })

  it('yields to other work while it verifies a long chain', async () => {
    const entries = storedChain(
      Array.from({ length: 3000 }, (_, n) => longEntry(n)),
      { prev: false, times: 'ms' },
    )
    let turns = 0
    const timer = setInterval(() => turns++, 0)
    expect(await verify(entries)).toMatchObject({ ok: true, count: 3000 })
    clearInterval(timer)
    expect(turns).toBeGreaterThan(0)
  })
})

function longEntry(number: number) {
  return { type: 'a.b', class: 'public' as const, actor: 'Worker', text: `entry ${number}` }
}
