import { describe, expect, it } from 'vitest'
import { diffLines } from '../../../../web/src/views/people/diff-lines.ts'

describe('a diff of two texts', () => {
  it('keeps equal lines and marks removed and added ones', () => {
    expect(diffLines('a\nb\nc', 'a\nx\nc').map(({ kind, text }) => `${kind} ${text}`)).toEqual([
      'same a',
      'out b',
      'in x',
      'same c',
    ])
  })
})
