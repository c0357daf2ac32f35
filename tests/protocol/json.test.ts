import { describe, expect, it } from 'vitest'
import { briefly, CHECK, only, onlyProblem, SEND } from './commands.ts'

describe('the JSON form (S1.18)', () => {
  it('reads a command with space and line ends anywhere', () => {
    const text = '\n {\n\t"orc_command" :\r\n{ "type"\n: "send_message" , "to":"B","content":"hi" }\n\n} text'
    const found = only(text)
    expect(found.notation).toBe('json')
    expect(found.fields).toEqual({ to: 'B', content: 'hi' })
    expect(text.slice(found.span.offset, found.span.end)).toBe(found.raw)
  })

  it('accepts name instead of type, and any case', () => {
    expect(briefly('{"orc_command": {"name": "list_agents"}}')).toEqual([['list_agents', {}]])
    expect(briefly('{"ORC_COMMAND": {"TYPE": "LIST_AGENTS"}}')).toEqual([['list_agents', {}]])
    expect(only('{"orc_command": {"type": "send_message", "TO": "B", "Content": "x"}}').fields).toEqual({
      to: 'B',
      content: 'x',
    })
  })

  it('reads escapes, braces and quotation marks in strings', () => {
    const content = 'a } ] " \\ \n\t{"orc_command": {}} </orc-command> é 😀'
    const text = JSON.stringify({ orc_command: { type: 'send_message', content } })
    expect(only(text).fields.content).toBe(content)
  })

  it('turns other values into text, and drops null', () => {
    const said = { type: 'send_message', to: 7, title: true, content: { a: [1, null] }, from: null }
    expect(only(JSON.stringify({ orc_command: said })).fields).toEqual({
      to: '7',
      title: 'true',
      content: '{"a":[1,null]}',
    })
  })

  it('lists unknown keys in the command and around it as ignored', () => {
    const found = only('{"orc_command": {"type": "list_agents", "x": 1}, "7": {"a": []}, "id": "q"}')
    expect(found.ignored.toSorted()).toEqual(['7', 'id', 'x'])
  })

  it('finds it inside other JSON', () => {
    const command = '{"orc_command": {"type": "list_agents"}}'
    expect(briefly(`[${command}, ${command}]`)).toEqual([
      ['list_agents', {}],
      ['list_agents', {}],
    ])
  })

  it.each([
    ['a word', '{"orc_command": maybe}'],
    ['a string', '{"orc_command": "mailbox_check"}'],
    ['a missing comma', '{"orc_command": {"type": "list_agents" "x": 1}}'],
    ['a trailing comma', '{"orc_command": {"type": "list_agents",}}'],
    ['a wrong word', '{"orc_command": {"type": "list_agents", "x": yes}}'],
    ['a wrong escape', '{"orc_command": {"type": "list_agents", "x": "\\q"}}'],
    ['single quotation marks', "{'orc_command': {'type': 'list_agents'}}"],
    ['a repeated key', '{"orc_command": {"type": "list_agents", "type": "mailbox_check"}}'],
    ['a key repeated in another case', '{"orc_command": {"type": "send_message", "to": "A", "TO": "B"}}'],
    ['a repeated orc_command', '{"orc_command": {"type": "list_agents"}, "orc_command": {"type": "x"}}'],
    ['values nested too deep', `{"orc_command": {"type": "list_agents", "x": ${'['.repeat(40)}`],
  ])('refuses %s and reports where (S0.23)', (_, text) => {
    const found = onlyProblem(`\n${text}`)
    expect(found.code).toBe('NOT_WELL_FORMED')
    expect(found.span).toMatchObject({ offset: 1, line: 2 })
  })

  it('reports typographic quotation marks', () => {
    expect(briefly('{“orc_command”: {“type”: “list_agents”}}')).toEqual(['NON_ASCII_QUOTES'])
    expect(briefly('{"orc_command": {“type”: “list_agents”}}')).toEqual(['NON_ASCII_QUOTES'])
  })

  it('reports an unescaped line end or quotation mark in a string, and continues behind it', () => {
    expect(briefly(`{"orc_command": {"type": "send_message", "content": "a\nb"}} ${CHECK}`)).toEqual([
      'UNESCAPED_CHARACTERS',
      ['mailbox_check', {}],
    ])
    expect(briefly(`{"orc_command": {"type": "send_message", "content": "a "b" c"}}\n${CHECK}`)).toEqual([
      'UNESCAPED_CHARACTERS',
      ['mailbox_check', {}],
    ])
  })

  it('does not run a command quoted in a broken string', () => {
    expect(
      briefly(`{"orc_command": {"type": "send_message", "content": "a\n<orc-command name='list_agents'/>"}}`),
    ).toEqual(['UNESCAPED_CHARACTERS'])
  })

  it('ends an unclosed string at a blank line', () => {
    expect(briefly(`{"orc_command": {"type": "list_agents}}\n\n${CHECK}`)).toEqual([
      'UNESCAPED_CHARACTERS',
      ['mailbox_check', {}],
    ])
  })

  it('reports a missing brace', () => {
    expect(briefly('{"orc_command": {"type": "list_agents"}')).toEqual(['MISSING_CLOSE'])
    expect(briefly(`{"orc_command": {"type": "list_agents"} and then ${CHECK}`)).toEqual([
      'NOT_WELL_FORMED',
      ['mailbox_check', {}],
    ])
  })

  it('reports a missing or unknown type', () => {
    expect(briefly('{"orc_command": {}}')).toEqual(['MISSING_TYPE'])
    expect(briefly('{"orc_command": {"type": 7}}')).toEqual(['MISSING_TYPE'])
    expect(briefly('{"orc_command": {"type": "dance"}}')).toEqual(['UNKNOWN_COMMAND'])
  })

  it('lets a closing tag inside a string close the command around it', () => {
    expect(only(`${SEND}say {"orc_command": "x</orc-command>\n`).fields.content).toBe(
      'say {"orc_command": "x',
    )
  })

  it.each([
    '{"orc_command"',
    '{"orc_command" is the key',
    '{"orc_commands": {}}',
    '{orc_command: {}}',
    '{"a":{}}',
    '{',
  ])('treats %s as prose', (text) => {
    expect(briefly(text)).toEqual([])
  })
})
