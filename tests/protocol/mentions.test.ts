import { describe, expect, it } from 'vitest'
import { withoutMentions } from '../../src/protocol/mentions.ts'

describe('a file mention in a message', () => {
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
    [
      '@\u00a0/../a @\u3000b @\u000bc',
      '\\@\u00a0/../a \\@\u3000b \\@\u000bc',
      '\\@\u00a0/../a \\@\u3000b \\@\u000bc',
    ],
    ['at 5 @ 10', 'at 5 @ 10', 'at 5 @ 10'],
    ['ends with @', 'ends with @', 'ends with @'],
  ])('%j is escaped', (text, alone, anywhere) => {
    expect([withoutMentions(text, 'alone'), withoutMentions(text, 'anywhere')]).toEqual([alone, anywhere])
  })

  it('is escaped only once', () => {
    for (const where of ['alone', 'anywhere'] as const) {
      const once = withoutMentions('@a 。@b c@[d] "@e" f@g \\@h @@i', where)
      expect(withoutMentions(once, where)).toBe(once)
    }
  })
})
