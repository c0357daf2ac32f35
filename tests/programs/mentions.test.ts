import { describe, expect, it } from 'vitest'
import { withoutMentions as forClaude } from '../../src/programs/claude-code/mentions.ts'
import { withoutMentions as forGemini } from '../../src/programs/gemini/mentions.ts'

describe('the name of a file in a message', () => {
  it.each([
    ['see @a.txt', 'see \\@a.txt', 'see \\@a.txt'],
    ['@a @"b c" @~/d @/e', '\\@a \\@"b c" \\@~/d \\@/e', '\\@a \\@"b c" \\@~/d \\@/e'],
    ['line\n@a', 'line\n\\@a', 'line\n\\@a'],
    ["from '@scope/name'", "from '\\@scope/name'", "from '\\@scope/name'"],
    ['。@a', '。\\@a', '。\\@a'],
    ['me@example.com', 'me@example.com', 'me\\@example.com'],
    ['@@a', '\\@\\@a', '\\@\\@a'],
    ['@[x](y)@a', '\\@\\[x](y)\\@a', '\\@[x](y)\\@a'],
    ['x@[y]@a', 'x@\\[y]\\@a', 'x\\@[y]\\@a'],
    ['\\@a', '\\@a', '\\@a'],
    ['at 5 @ 10', 'at 5 @ 10', 'at 5 @ 10'],
    ['ends with @', 'ends with @', 'ends with @'],
  ])('%j is no name to them', (text, claude, gemini) => {
    expect([forClaude(text), forGemini(text)]).toEqual([claude, gemini])
  })

  it('is the same when it is given a second time', () => {
    for (const clean of [forClaude, forGemini]) {
      const once = clean('@a 。@b c@[d] "@e" f@g \\@h @@i')
      expect(clean(once)).toBe(once)
    }
  })
})
