import { describe, expect, it } from 'vitest'
import { showInvisible } from '../../../web/src/components/exact-text.ts'

describe('text that a person approves', () => {
  it('shows invisible and reordering characters by their code point', () => {
    expect(showInvisible('rm -rf \u202e/pmt\u2069\u200b\u0007 x')).toBe(
      'rm -rf ⟨U+202E⟩/pmt⟨U+2069⟩⟨U+200B⟩⟨U+0007⟩ x',
    )
    expect(showInvisible('a\n\tb – „c“ 👩\u200d🚀 ע')).toBe('a\n\tb – „c“ 👩\u200d🚀 ע')
  })
})
