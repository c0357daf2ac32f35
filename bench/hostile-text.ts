/** A megabyte each of text that an attacker or a broken model might write. */
const MEGABYTE = 1_048_576

function fill(unit: string, bytes = MEGABYTE): Buffer {
  return Buffer.alloc(bytes, unit)
}

function growingRuns(): Buffer {
  const parts: string[] = []
  for (let length = 1, bytes = 0; bytes < MEGABYTE; length++) {
    parts.push('`'.repeat(length))
    bytes += length + 1
  }
  return Buffer.from(parts.join(' ')).subarray(0, MEGABYTE)
}

function around(opening: string, unit: string, closing: string): Buffer {
  const bytes = 1_000_000
  return Buffer.concat([
    Buffer.from(opening),
    fill(unit, bytes - (bytes % unit.length)),
    Buffer.from(closing),
  ])
}

const MESSAGE = '<orc-command name="send_message" to="B">'
const CLOSING = '</orc-command>'

export const HOSTILE_TEXTS: Record<string, () => Buffer> = {
  'less-than signs': () => fill('<'),
  'small whole commands': () => fill('<orc-command name="mailbox_check"/>'),
  'small whole commands of no known type': () => fill('<orc-command name="a"/>'),
  'CDATA sections': () => around(MESSAGE, '<![CDATA[x]]>', CLOSING),
  'tags that never go on': () => fill('<orc-command '),
  'tags without attributes': () => fill('<orc-command>'),
  'quotes that never close': () => fill('<orc-command name="'),
  'quotes of both kinds': () => fill(`<orc-command a='<orc-command b="`),
  'unclosed commands': () => fill('<orc-command name="mailbox_check">'),
  'unclosed unknown commands': () => fill('<orc-command name="a">'),
  'unclosed messages': () => fill(`${MESSAGE}hello\n\n`),
  'commands 22,000 deep': () =>
    Buffer.from('<orc-command name="mailbox_check">'.repeat(22_000) + CLOSING.repeat(22_000)),
  'commands in a message': () => around(MESSAGE, `<orc-command name="list_agents">${CLOSING}`, CLOSING),
  'closing tags': () => fill(CLOSING),
  'tags full of attributes': () => fill('<orc-command a="b" c="d" e="f" g="h"> '),
  'one tag full of attributes': () => around('<orc-command ', 'a="b" ', ''),
  'one run of backticks': () => fill('`'),
  backticks: () => fill('` '),
  'ever longer runs of backticks': growingRuns,
  fences: () => fill('```\n'),
  'fences in lists': () => fill('- ~~~\n'),
  'commands in a fence': () => around('```\n', '<orc-command name="mailbox_check"/>\n', ''),
  'commands and backticks': () => fill('` <orc-command name="a"> '),
  'JSON openings': () => fill('{"orc_command":'),
  'JSON openings in arrays': () => fill('{"orc_command":{"a":['),
  'an endless JSON string': () => around('{"orc_command":{"content":"', '\\"x', ''),
  references: () => around(MESSAGE, '&amp;', CLOSING),
  'CDATA without an end': () => around(MESSAGE, '<![CDATA[', CLOSING),
  'elements without an end': () => around('<orc-command type="send_message">', '<to>', CLOSING),
  'response blocks': () => fill('[ORCHESTRATOR RESPONSE]\n'),
  'message frames': () => fill('x [ORCHUB MESSAGE '),
}
