import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { completeRows } from '../../src/runtimes/tmux/terminal-snapshot.ts'
import { diffLines } from '../../web/src/components/diff-lines.ts'
import { changesOf, editable, unreadableFields } from '../../web/src/components/edited-fields.ts'
import { showInvisible } from '../../web/src/components/exact-text.ts'
import { byNeed, graphMembers } from '../../web/src/views/team/graph-members.ts'
import { layOutTree } from '../../web/src/views/team/tree-layout.ts'

const web = join(import.meta.dirname, '../../web')
const files = globSync('src/**/*.{ts,tsx,css}', { cwd: web })
const read = (file: string) => readFileSync(join(web, file), 'utf8')

describe('the sources of the control room', () => {
  it('know the service by its client and its contract only', () => {
    expect(files.length).toBeGreaterThan(20)
    for (const file of files) {
      const outside = [...read(file).matchAll(/from '((?:\.\.\/)+src\/[^']+)'/g)].map(([, path]) =>
        path!.replace(/^(\.\.\/)+/, ''),
      )
      for (const path of outside)
        expect(['src/client/client.ts', 'src/service/contract.ts'], file).toContain(path)
      expect(read(file), file).not.toMatch(/^import \{(?![^}]*type )[^}]*\} from '[./]*src\/service/m)
    }
  })

  it('write text as text: no HTML is ever made from a string', () => {
    for (const file of files) {
      expect(read(file), file).not.toMatch(
        /dangerouslySetInnerHTML|innerHTML|insertAdjacentHTML|document\.write|eval\(/,
      )
    }
  })

  it('load nothing from elsewhere', () => {
    for (const file of [...files, 'index.html'])
      expect(read(file), file).not.toMatch(/https?:\/\/(?!www\.w3\.org)/)
  })
})

describe('a picture of a terminal', () => {
  it('has rows that are complete in themselves: each begins with the colours it goes on with', () => {
    const rows = completeRows([
      '\u001b[1m\u001b[31mred',
      'still red\u001b[0m plain',
      'plain',
      '\u001b[0;32mgreen',
      'on',
    ])
    expect(rows).toEqual([
      '\u001b[1m\u001b[31mred',
      '\u001b[1m\u001b[31mstill red\u001b[0m plain',
      'plain',
      '\u001b[0;32mgreen',
      '\u001b[0;32mon',
    ])
  })

  it('holds colours only: no links, no titles, nothing that moves the cursor', () => {
    const [row] = completeRows([
      '\u001b]8;;http://evil\u0007click\u001b]8;;\u0007\u001b[2J\u001b[10;10Hx\u001bcy\u001b[31mz',
    ])
    expect(row).toBe('clickxcy\u001b[31mz')
    // C1 controls are sequences in one character, and tabs and bells move or ring.
    expect(completeRows(['a\u009b2Jb\u009d0;t\u009cc\u0007\b\rd\u007f'])).toEqual(['a2Jb0;tcd'])
    expect(completeRows(['\u000eqqq\u000f'])).toEqual(['\u000eqqq\u000f'])
  })
})

describe('a difference of two texts', () => {
  it('keeps what is the same and marks what went and what came', () => {
    expect(diffLines('a\nb\nc', 'a\nx\nc').map(({ kind, text }) => `${kind} ${text}`)).toEqual([
      'same a',
      'out b',
      'in x',
      'same c',
    ])
  })
})

describe('what is approved', () => {
  it('hides nothing: what cannot be seen, or turns what can, is shown by its number', () => {
    expect(showInvisible('rm -rf \u202e/pmt\u2069\u200b\u0007 x')).toBe(
      'rm -rf ⟨U+202E⟩/pmt⟨U+2069⟩⟨U+200B⟩⟨U+0007⟩ x',
    )
    expect(showInvisible('a\n\tb – „c“ 👩\u200d🚀 ע')).toBe('a\n\tb – „c“ 👩\u200d🚀 ע')
  })
})

describe('a change to what is proposed', () => {
  it('is sent only where it can be read: what was no text must be JSON', () => {
    const fields = { reason: 'done', labels: ['a'], count: 1 }
    const asked = { action: { fields } }
    const edited = editable(asked)
    expect([unreadableFields(asked, edited), changesOf(asked, edited)]).toEqual([[], {}])
    const broken = { ...edited, reason: '{not JSON, but text', labels: '["a", ' }
    expect(unreadableFields(asked, broken)).toEqual(['labels'])
    expect(changesOf(asked, { ...edited, labels: '["b"]', count: '2' })).toEqual({ labels: ['b'], count: 2 })
  })
})

describe('the drawing of a team', () => {
  const size = { width: 100, height: 50, gapX: 10, gapY: 10 }

  it('gives each agent a place of its own, parents above their children', () => {
    const members = [
      { name: 'A' },
      { name: 'B', parent: 'A' },
      { name: 'C', parent: 'A' },
      { name: 'D', parent: 'B' },
      { name: 'E', parent: 'nobody' },
    ]
    const places = layOutTree(members, size)
    expect(new Set([...places.values()].map(({ x, y }) => `${x},${y}`)).size).toBe(members.length)
    expect(places.get('A')!.y).toBeLessThan(places.get('B')!.y)
    expect(places.get('B')!.y).toBeLessThan(places.get('D')!.y)
    expect(places.get('E')!.y).toBe(0)
  })

  it('shows of a large team the top and whoever needs a person, and says how many are below', () => {
    const member = (index: number) => ({
      name: `a${index}`,
      parent: index === 0 ? undefined : `a${Math.floor((index - 1) / 10)}`,
      session: 'idle',
      asks: index === 999,
    })
    const members = Array.from({ length: 1000 }, (_, index) => member(index))
    const { drawn, below } = graphMembers(members, 80)
    const names = drawn.map(({ name }) => name)
    // Two levels, and a999 below a99 below a9.
    expect(names).toEqual([...Array.from({ length: 11 }, (_, index) => `a${index}`), 'a99', 'a999'])
    expect([...below.values()].reduce((sum, count) => sum + count, 0)).toBe(1000 - drawn.length)
    const part = graphMembers(members, 80, 'a5')
    expect(part.drawn.every(({ name }) => name === 'a5' || /^a(5[1-9]|60)$/.test(name))).toBe(true)
    expect(part.drawn).toHaveLength(11)
    expect(part.below.get('a51')).toBe(10)
    // Those who ask are drawn even when the top alone would fill it.
    const flat = Array.from({ length: 200 }, (_, index) => ({
      name: `f${index}`,
      session: index === 198 ? 'error' : 'idle',
      asks: index === 199,
    }))
    const few = graphMembers(flat, 80).drawn.map(({ name }) => name)
    expect(few).toHaveLength(80)
    expect(few.slice(-2)).toEqual(['f198', 'f199'])
    expect(
      flat
        .toSorted(byNeed)
        .map(({ name }) => name)
        .slice(0, 3),
    ).toEqual(['f199', 'f198', 'f0'])
    const circle = [
      { name: 'A', parent: 'B', session: 'idle', asks: false },
      { name: 'B', parent: 'A', session: 'idle', asks: false },
    ]
    expect(graphMembers(circle, 1).drawn.length).toBeLessThanOrEqual(2)
  })

  it('ends for parents in a circle, and for a thousand agents', () => {
    expect(
      layOutTree(
        [
          { name: 'A', parent: 'B' },
          { name: 'B', parent: 'A' },
        ],
        size,
      ).size,
    ).toBe(2)
    const many = Array.from({ length: 1000 }, (_, index) => ({
      name: `a${index}`,
      parent: index === 0 ? undefined : 'a0',
    }))
    const places = layOutTree(many, size)
    expect(new Set([...places.values()].map(({ x, y }) => `${x},${y}`)).size).toBe(1000)
  })
})
