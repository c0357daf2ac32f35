import { matchesGlob as nodeMatches } from 'node:path/posix'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Glob, globsMeet, matchesGlob, parseGlob } from '../../src/base/glob.ts'

function glob(text: string): Glob {
  const parsed = parseGlob(text)
  if (!parsed.ok) throw new Error(`${text} ${parsed.error}`)
  return parsed.value
}

describe('a glob', () => {
  it.each([
    ['outbox/data.json', 'outbox/data.json', true],
    ['outbox/data.json', 'outbox/data.jsonl', false],
    ['outbox/*.csv', 'outbox/a.csv', true],
    ['outbox/*.csv', 'outbox/data/a.csv', false],
    ['outbox/**', 'outbox/data/deep/a.csv', true],
    ['outbox/**/*.csv', 'outbox/a.csv', true],
    ['outbox/**/*.csv', 'outbox/x/y/a.csv', true],
    ['outbox/data/', 'outbox/data/x/y', true],
    ['outbox/{a,b}?.md', 'outbox/b1.md', true],
    ['outbox/{a,b}?.md', 'outbox/c1.md', false],
    ['outbox/*', 'outbox/.hidden', true],
    ['outbox/ä?.md', 'outbox/ä😀.md', true],
  ])('%s on %s: %s', (pattern, path, expected) => {
    expect(matchesGlob(glob(pattern), path)).toBe(expected)
  })

  it.each([
    ['', 'is empty'],
    ['/etc/passwd', 'must be relative'],
    ['C:/x', 'must be relative'],
    ['outbox/../../x', 'must not contain ".."'],
    ['./x', 'must not contain "."'],
    ['a//b', 'has an empty part between slashes'],
    ['a\\b', 'has a backslash; separate folders with /'],
    ['a/{b', 'has unbalanced or nested braces'],
    ['a/}b{', 'has unbalanced or nested braces'],
    ['a/{b,{c}}', 'has unbalanced or nested braces'],
    ['a/{b,../c}', 'must not contain ".."'],
    ['a/[bc]', 'has brackets, which are not supported; use ? for any one character'],
    ['a/b**', 'must have "**" only as a whole part, as in data/**/x'],
    ['a\nb', 'has control characters'],
    ['x'.repeat(501), 'is longer than 500 characters'],
    ['{a,b}'.repeat(7), 'expands to more than 64 patterns'],
  ])('refuses %j: %s', (pattern, why) => {
    expect(parseGlob(pattern)).toEqual({ ok: false, error: why })
  })

  const part = fc.stringMatching(/^[ab*?]{1,4}$/).filter((text) => !text.includes('**'))
  const pattern = fc
    .array(fc.oneof(part, fc.constant('**')), { minLength: 1, maxLength: 4 })
    .map((list) => list.join('/'))
  const path = fc
    .array(fc.stringMatching(/^[ab]{1,4}$/), { minLength: 1, maxLength: 4 })
    .map((list) => list.join('/'))

  it("matches the same paths as Node's matchesGlob", () => {
    fc.assert(
      fc.property(pattern, path, (text, file) => {
        // A last ** stands for files inside; Node's also takes the folder itself.
        fc.pre(!text.endsWith('**'))
        expect(matchesGlob(glob(text), file)).toBe(nodeMatches(file, text))
      }),
      { numRuns: 2000 },
    )
  })

  it('meets another glob if some path matches both', () => {
    fc.assert(
      fc.property(pattern, pattern, path, (a, b, file) => {
        const both = matchesGlob(glob(a), file) && matchesGlob(glob(b), file)
        if (both) expect(globsMeet(glob(a), glob(b))).toBe(true)
        if (/^[ab/]+$/.test(a)) expect(globsMeet(glob(a), glob(b))).toBe(matchesGlob(glob(b), a))
      }),
      { numRuns: 2000 },
    )
  })

  it.each([
    ['outbox/*.csv', 'outbox/*.json', false],
    ['outbox/data*', 'outbox/*.json', true],
    ['outbox/**', 'outbox/x/*.md', true],
    ['outbox/a/*', 'outbox/b/*', false],
    ['outbox/{a,b}.md', 'outbox/{b,c}.md', true],
  ])('%s meets %s: %s', (a, b, expected) => {
    expect(globsMeet(glob(a), glob(b))).toBe(expected)
    expect(globsMeet(glob(b), glob(a))).toBe(expected)
  })

  it('matches hostile patterns in polynomial time', () => {
    const hostile = glob(`${'*a'.repeat(120)}b`)
    expect(matchesGlob(hostile, 'a'.repeat(5000))).toBe(false)
    expect(globsMeet(hostile, glob(`${'a*'.repeat(120)}c`))).toBe(false)
  })
})
