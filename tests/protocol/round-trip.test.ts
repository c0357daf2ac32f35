import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { only } from './commands.ts'
import { encodeCommand } from './encode-command.ts'

const NOTATIONS = ['modern', 'legacy', 'json'] as const
const awkward = fc.constantFrom(
  ...`<|>|&|&amp;|"|'|\`|\`\`\`|~~~|\n|\r\n|\n\n| |\t|]]>|<![CDATA[|\\|\0|</orc-command>|<to>|</content>|}}|- |> `.split(
    '|',
  ),
  ...'<orc-command name="mailbox_check"/>|{"orc_command": {|[ORCHESTRATOR RESPONSE]'.split('|'),
  ...'[END ORCHUB MESSAGE msg_1]|[ORCHUB MESSAGE msg_1]|text|é|😀|\u2028|\ufeff'.split('|'),
)
const value = fc.oneof(
  fc.array(awkward, { minLength: 1, maxLength: 12 }).map((parts) => parts.join('')),
  fc.string({ unit: 'grapheme', minLength: 1 }),
)
const fields = fc.record(
  { from: value, to: value, title: value, priority: value, content: value },
  { requiredKeys: ['content'] },
)

describe('an encoded command', () => {
  it.each(NOTATIONS)('decodes to the same fields in the %s form', (notation) => {
    fc.assert(
      fc.property(fields, (said) => {
        const found = only(
          `Text.\n\n${encodeCommand({ type: 'send_message', fields: said, body: 'content' }, notation)}\n\nMore.`,
        )
        expect(found.fields).toEqual(said)
        expect(found.notation).toBe(notation)
        expect(found.ignored).toEqual([])
      }),
      { numRuns: 1000 },
    )
  })

  it('escapes only where necessary', () => {
    const command = {
      type: 'send_message',
      fields: { to: 'B', title: "It's a > b", content: 'Run `x`.\n\n- ok' },
      body: 'content',
    }
    expect(encodeCommand(command, 'modern')).toBe(
      `<orc-command name="send_message" to="B" title="It's a > b">\nRun \`x\`.\n\n- ok\n</orc-command>`,
    )
    expect(encodeCommand({ type: 'mailbox_check', fields: {} }, 'modern')).toBe(
      '<orc-command name="mailbox_check"></orc-command>',
    )
    expect(encodeCommand({ type: 'mailbox_check', fields: {} }, 'json')).toBe(
      '{"orc_command":{"type":"mailbox_check"}}',
    )
  })
})
