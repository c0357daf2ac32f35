import { describe, expect, it } from 'vitest'
import { briefly, CHECK, END, LIST, onlyProblem, SEND, scan } from './commands.ts'

const LISTED = ['list_agents', {}]

describe('problems (S0.23)', () => {
  it.each([
    ['NOT_WELL_FORMED', `<orc-command name=mailbox_check>${END}`],
    ['NOT_WELL_FORMED', '<orc-command name=mailbox_check/>'],
    ['NOT_WELL_FORMED', '<orc-command name="mailbox_check" urgent/>'],
    ['NOT_WELL_FORMED', `<orc-command send_message to="B">x${END}`],
    ['NOT_WELL_FORMED', '<orc-command name="mailbox_check" to="A" TO="B"/>'],
    ['NOT_WELL_FORMED', '<orc-command name=\\"mailbox_check\\"/>'],
    ['NOT_WELL_FORMED', '<orc-command name="mailbox_check" / x="y">'],
    ['NOT_WELL_FORMED', '<orc-command name="mailbox_check"'],
    ['NOT_WELL_FORMED', '<orc-command name='],
    ['MISSING_CLOSE', `${SEND}hello`],
    ['MISSING_CLOSE', '<orc-command name="mailbox_check">'],
    ['MISMATCHED_QUOTES', `<orc-command name="mailbox_check'>${END}`],
    ['MISMATCHED_QUOTES', `<orc-command name="mailbox_check>${END}`],
    ['MISMATCHED_QUOTES', `<orc-command name='send_message" to='B'>x${END}`],
    ['MISMATCHED_QUOTES', `<orc-command name="send_message" to="B' title='x'>x${END}`],
    ['MISMATCHED_QUOTES', `<orc-command name="mailbox_check" "/>`],
    ['NON_ASCII_QUOTES', '<orc-command name=“mailbox_check”/>'],
    ['NON_ASCII_QUOTES', '<orc-command name=‘mailbox_check’/>'],
    ['NON_ASCII_QUOTES', '<orc-command name=«mailbox_check»/>'],
    ['NON_ASCII_QUOTES', `<orc-command name="send_message” to="B">x${END}`],
    ['UNESCAPED_CHARACTERS', `<orc-command name="send_message" to="B" title="say "hi" now">x${END}`],
    ['UNESCAPED_CHARACTERS', `<orc-command name='send_message' to='B' title='don't panic'>x${END}`],
    ['NOT_WELL_FORMED', `<orc-command name="send_message" <b> to="B">x${END}`],
    ['NOT_WELL_FORMED', '<orc-command name="mailbox_check" ="x"/>'],
    ['UNKNOWN_COMMAND', '<orc-command name="dance"/>'],
    ['UNKNOWN_COMMAND', `<orc-command name="dance">${CHECK}${END}`],
    ['UNKNOWN_COMMAND', '<orc-command name="constructor"/>'],
    ['UNKNOWN_COMMAND', '<orc-command name="dance">'],
    ['MISSING_TYPE', `<orc-command to="B">x${END}`],
    ['MISSING_TYPE', '<orc-command name=""/>'],
    ['MISSING_TYPE', '<orc-command name="  "/>'],
    ['MISSING_TYPE', `<orc-command>\n<to>B</to>${END}`],
  ])('is %s for %s', (code, text) => {
    const found = onlyProblem(text)
    expect(found.code).toBe(code)
    expect(found.message).not.toBe('')
    expect(found.hint).not.toBe('')
    expect(found.span).toMatchObject({ offset: 0, line: 1 })
  })

  it('quotes an unknown type as written (S1.11)', () => {
    expect(onlyProblem('<orc-command name=" Dance "/>').message).toBe('Unknown command type: Dance')
    expect(onlyProblem('{"orc_command": {"type": "Dance"}}').message).toBe('Unknown command type: Dance')
  })

  it('suggests a similar command', () => {
    expect(onlyProblem('<orc-command name="Send-Message"/>').hint).toBe('Did you mean send_message?')
  })

  it('reads the command behind any problem', () => {
    const broken = [
      '<orc-command name=mailbox_check>x</orc-command>',
      `<orc-command name="send_message' to="B">x</orc-command>`,
      '<orc-command name=“mailbox_check”></orc-command>',
      '<orc-command name="mailbox_check></orc-command>',
      '<orc-command name="send_message" to="B" title="say "hi" now">x</orc-command>',
      '<orc-command name="mailbox_check"',
      '<orc-command to="B">x</orc-command>',
      '<orc-command name="dance">x</orc-command>',
      '<orc-command name="mailbox_check">',
      '{"orc_command": {"type": list_agents}',
    ]
    for (const text of broken) {
      const found = briefly(`${text}\n\nThen "more" text, and don't stop.\n\n${LIST}`)
      expect([text, found.length, found.at(-1)]).toEqual([text, 2, LISTED])
    }
  })

  it('runs no command inside a broken or unknown one (C5)', () => {
    expect(briefly(`<orc-command name=“send_message” to=“B”>${CHECK}${END}`)).toEqual(['NON_ASCII_QUOTES'])
    expect(briefly(`<orc-command name=send_message>${CHECK}${END}`)).toEqual(['NOT_WELL_FORMED'])
    expect(briefly(`<orc-command to="B">${CHECK}${END}`)).toEqual(['MISSING_TYPE'])
    expect(briefly(`<orc-command name="dance">${CHECK}${END}`)).toEqual(['UNKNOWN_COMMAND'])
  })

  it.each([
    'Use the <orc-command> tag.',
    'Use <orc-command ...> or <orc-command …> or <orc-command/>.',
    'It ends with </orc-command>.',
    '<orc-commands name="mailbox_check"/>',
    '<orc-command-x name="mailbox_check"/>',
    '<orc-command_x name="mailbox_check"/>',
    '<orc-command.name="mailbox_check"/>',
    '<orc_command name="mailbox_check"/>',
    '< orc-command name="mailbox_check"/>',
    '<xorc-command name="mailbox_check"/>',
    '&lt;orc-command name="mailbox_check"/&gt;',
    'The <orc-command tag takes a name and a type, and so on, and it is nothing to worry about > really',
    '<orc-command',
    '<orc-comm',
    '<',
    '</orc-command',
    '',
  ])('finds nothing in prose: %s', (text) => {
    expect(scan(text)).toEqual([])
  })

  it('finds the command behind prose about it', () => {
    expect(briefly(`Use <orc-command to send, it's easy: ${LIST}`)).toEqual([LISTED])
    expect(briefly(`The <orc-command> tag: ${LIST} and <orc-command>`)).toEqual([LISTED])
  })

  it('lists the first of a flood of problems and counts the others', () => {
    const found = scan('<orc-command name=x/>'.repeat(5000))
    const listed = found.filter((one) => !one.ok && one.code === 'NOT_WELL_FORMED')
    expect(listed.length).toBeGreaterThanOrEqual(1000)
    expect(listed.length).toBeLessThan(1200)
    const omitted = found.flatMap((one) => (!one.ok && one.code === 'TOO_MANY_PROBLEMS' ? [one.message] : []))
    const counted = omitted
      .map((message) => Number.parseInt(message, 10))
      .reduce((sum, count) => sum + count, 0)
    expect(listed.length + counted).toBe(5000)
  })

  it('omits no command in a flood of problems', () => {
    const found = briefly(`<orc-command name=x/>${LIST}`.repeat(3000))
    expect(found.filter((one) => one[0] === 'list_agents')).toHaveLength(3000)
  })
})
