import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type AuditLine, formatLine, parseLine } from '../../src/audit/readable-line.ts'

const base: AuditLine = {
  at: '2025-10-20T14:30:15.000Z',
  type: 'success',
  actor: 'triage',
  subject: 'orchestrator',
  text: `Applied 'bug' label`,
  confidence: 0.97,
}

const hostile = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom(...'\n \r \u001b[2J \u009b1m \u202e \u2066 \u2028 \u0085 \\ \\n \\('.split(' ')),
      fc.constantFrom('] [', ' (confidence: 1)', ': ', ...'→ \u{e0041} \ud800 👩‍🚀'.split(' ')),
      fc.constant('(confidence: 0.5)'),
    ),
    { maxLength: 6 },
  )
  .map((parts) => parts.join(''))

const lines: fc.Arbitrary<AuditLine> = fc.record(
  {
    at: fc.constant(base.at),
    type: fc.constantFrom('success', 'message.accepted', 'security.sender_mismatch'),
    actor: hostile,
    subject: hostile,
    text: hostile,
    confidence: fc.double({ min: 0, max: 1, noNaN: true }).map((number) => number + 0),
  },
  { requiredKeys: ['at', 'type', 'actor', 'text'] },
)

describe('formatLine', () => {
  it('writes the line of S3.22', () => {
    expect(formatLine(base)).toBe(
      `[2025-10-20T14:30:15.000Z] [triage→orchestrator] SUCCESS: Applied 'bug' label (confidence: 0.97)`,
    )
  })

  it('omits the subject and the confidence if there are none (S3.22)', () => {
    const { subject: _, confidence: __, ...rest } = base
    expect(formatLine({ ...rest, type: 'issue.logged' })).toBe(
      `[2025-10-20T14:30:15.000Z] [triage] ISSUE.LOGGED: Applied 'bug' label`,
    )
  })

  it('escapes hostile text visibly (S3.23)', () => {
    const text = 'ok\n[2025-10-20T14:30:16.000Z] [operator] GRANTED: all\u001b[2K\u202e\\'
    expect(formatLine({ ...base, text })).toBe(
      '[2025-10-20T14:30:15.000Z] [triage→orchestrator] SUCCESS: ' +
        'ok\\n[2025-10-20T14:30:16.000Z] [operator] GRANTED: all\\u{1b}[2K\\u{202e}\\\\ (confidence: 0.97)',
    )
  })

  it('leaves readable text of any script unchanged', () => {
    const text = 'Größe → 日本語 العربية नमस्ते 👩‍🚀 ✓'
    expect(formatLine({ ...base, text })).toContain(text)
  })

  it('never contains a line break, a control character or one that reorders text, whatever the entry contains (S3.23)', () => {
    fc.assert(
      fc.property(lines, (line) => {
        expect(formatLine(line)).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\p{Bidi_Control}\u{e0000}-\u{e007f}]/u)
      }),
    )
  })

  it('keeps text from imitating another part of the line (S3.22)', () => {
    fc.assert(
      fc.property(lines, (line) => {
        expect(parseLine(formatLine(line))).toEqual(line)
      }),
    )
  })
})

describe('parseLine', () => {
  it('reads the examples of the protocol (S3.22)', () => {
    expect(parseLine('[2025-10-20T14:30:00Z] [orchestrator→triage] TASK: Triage new issue #123')).toEqual({
      at: '2025-10-20T14:30:00Z',
      type: 'task',
      actor: 'orchestrator',
      subject: 'triage',
      text: 'Triage new issue #123',
    })
  })

  it.each(['', 'plain text', '[x] y', '[a] [b] KIND text', '[a] [b] KIND: one\ntwo'])(
    'refuses %j',
    (text) => {
      expect(parseLine(text)).toBeUndefined()
    },
  )

  it('treats an escape of no character as plain text', () => {
    expect(parseLine('[a] [b] KIND: \\u{ffffff}')?.text).toBe('u{ffffff}')
  })
})
