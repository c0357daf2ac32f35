import { describe, expect, it } from 'vitest'
import { briefly, CHECK, END, LIST, only, onlyProblem, SEND } from './commands.ts'

describe('the modern form', () => {
  it('accepts attributes in any order, over several lines, with space around the equals sign (S0.2, S0.4)', () => {
    const text = `<orc-command\n  to = "B"\n\tfrom='A'\r\n  name\n=\n"send_message"\n>\nhi\n</orc-command >`
    expect(only(text).fields).toEqual({ to: 'B', from: 'A', content: 'hi' })
  })

  it('accepts type instead of name, and both if they agree (S0.4)', () => {
    expect(only('<orc-command type="list_agents"/>').type).toBe('list_agents')
    expect(only('<orc-command type="list_agents" name=" LIST_AGENTS "/>').ignored).toEqual([])
  })

  it('reads name or type as a parameter if the command has such a parameter', () => {
    expect(only('<orc-command type="hire" name="Bob"/>').fields).toEqual({ name: 'Bob' })
  })

  it('refuses a name and a type that differ', () => {
    expect(onlyProblem('<orc-command type="list_agents" name="mailbox_check"/>').code).toBe('NOT_WELL_FORMED')
  })

  it('accepts either kind of quotes, each with the other kind inside (S0.5)', () => {
    const { fields } = only(`<orc-command name='send_message' to="B" title='say "hi"'>x</orc-command>`)
    expect(fields.title).toBe('say "hi"')
  })

  it('treats self-closing tags and empty bodies alike (S0.5)', () => {
    const wanted = [['mailbox_check', {}]]
    expect(briefly('<orc-command name="mailbox_check"/>')).toEqual(wanted)
    expect(briefly('<orc-command name="mailbox_check" / >')).toEqual(wanted)
    expect(briefly('<orc-command name="mailbox_check"></orc-command>')).toEqual(wanted)
    expect(briefly('<orc-command name="mailbox_check">\n \n</orc-command>')).toEqual(wanted)
  })

  it('reads hyphens as underscores in names of parameters', () => {
    const { fields } = only('<orc-command name="update_status" current-task="tests" STATUS="idle"/>')
    expect(fields).toEqual({ current_task: 'tests', status: 'idle' })
  })

  it('fills in no default, not even the title (C13)', () => {
    expect(only(`${SEND}\n\nFirst line\nSecond${END}`).fields).toEqual({
      to: 'B',
      content: 'First line\nSecond',
    })
  })

  it('keeps the formatting inside the body and drops the space around it (S0.6, S0.20)', () => {
    const { fields } = only(`${SEND}\n  Summary:\n\n    - one\n\t- two  \r\n  end\n\n${END}`)
    expect(fields.content).toBe('Summary:\n\n    - one\n\t- two  \r\n  end')
  })

  it('keeps tags, ampersands and less-than signs in the body as text (C5)', () => {
    const html = '<p class="x">a < b && c</p><br/><to>nobody</to>'
    expect(only(SEND + html + END).fields).toEqual({ to: 'B', content: html })
  })

  it('decodes references in bodies and attributes, once, and leaves unknown ones (C5)', () => {
    const said = '&lt;b&gt; &amp;lt; &quot;&apos; &#65;&#x1F600; &AMP; &nbsp; &#0; &#xD800; &#99999999; & &;'
    const meant = '<b> &lt; "\' A😀 & &nbsp; &#0; &#xD800; &#99999999; & &;'
    expect(only(SEND + said + END).fields.content).toBe(meant)
    expect(only(`<orc-command name="send_message" title="${said}"/>`).fields.title).toBe(meant)
  })

  it.each([
    ['&#1114111;', '\u{10ffff}'],
    ['&#x10FFFF;&#X41;', '\u{10ffff}A'],
    ['&#00000065;', 'A'],
    ['&LT;&GT;&QUOT;&APOS;', '<>"\''],
    ...[
      '&#x110000;',
      '&#000000065;',
      '&#x000000041;',
      '&#;',
      '&#x;',
      '&#6A;',
      '&#xG;',
      '&Lt;',
      '&ltx;',
      '&l;',
    ].map((said) => [said, said]),
    ...['&amp', '&#65', '&&', 'a &', '&😀;', '&amp\u0130;'].map((said) => [said, said]),
    ['é &amp; “&lt;” 😀', 'é & “<” 😀'],
  ])('decodes %j as %j', (said, meant) => {
    expect(only(SEND + said + END).fields.content).toBe(meant)
  })

  it('keeps CDATA verbatim, including closing tags and references (C5)', () => {
    const { fields } = only(`${SEND}see <![CDATA[ ${END} &amp; <b> ]]> and &amp; <![cdata[x]]>${END}`)
    expect(fields.content).toBe(`see  ${END} &amp; <b>  and & x`)
  })

  it('trims space inside CDATA, but no space written as a reference', () => {
    expect(only(`${SEND}<![CDATA[\n x \n]]>${END}`).fields.content).toBe('x')
    expect(only(`${SEND}\n&#32;x&#10;\n${END}`).fields.content).toBe(' x\n')
    expect(only(`${SEND}<![CDATA[ a ]]> &lt; <![CDATA[ b ]]>${END}`).fields.content).toBe('a  <  b')
    expect(only(`${SEND}<![CDATA[ a ]]><![CDATA[ b ]]> c${END}`).fields.content).toBe('a  b  c')
  })

  it('treats the end of a CDATA section without a beginning as text, and keeps the space before it', () => {
    expect(only(`${SEND}<![CDATA[a]]> b ]]>${END}`).fields.content).toBe('a b ]]>')
    expect(only(`${SEND}]]> <![CDATA a]]>${END}`).fields.content).toBe(']]> <![CDATA a]]>')
  })

  it('treats an unfinished CDATA section as text', () => {
    expect(only(`${SEND}<![CDATA[a]]> <![CDATA[ b${END}`).fields.content).toBe('a <![CDATA[ b')
    expect(only(`${SEND}a <![CDATA[ b${END}`).fields.content).toBe('a <![CDATA[ b')
  })

  it('ignores the body of a command that takes none, and lists it as ignored', () => {
    const { fields, ignored } = only(`<orc-command name="mailbox_check">please${END}`)
    expect(fields).toEqual({})
    expect(ignored).toEqual(['body'])
  })

  it('prefers an attribute to the body, and the body to an empty attribute (S0.3)', () => {
    const both = only(`<orc-command name="send_message" to="B" content="attribute">body${END}`)
    expect([both.fields.content, both.ignored]).toEqual(['attribute', ['body']])
    expect(only(`<orc-command name="send_message" content="">body${END}`).fields.content).toBe('body')
  })

  it('lists parameters that the command does not have as ignored (C5)', () => {
    const { fields, ignored } = only('<orc-command name="list_agents" Agent_Name="Master" __proto__="x"/>')
    expect(fields).toEqual({})
    expect(ignored).toEqual(['Agent_Name', '__proto__'])
  })
})

describe('the legacy form', () => {
  it('reads child elements in any order and case (S0.3)', () => {
    const text = `<orc-command type="send_message">
      <Content>
        I've completed the login.
          Files: a.py
      </Content>
      <TO>B</to>
      <from>A</from><priority>high</priority>
    </orc-command>`
    const found = only(text)
    expect(found.notation).toBe('legacy')
    expect(found.fields).toEqual({
      content: "I've completed the login.\n          Files: a.py",
      to: 'B',
      from: 'A',
      priority: 'high',
    })
  })

  it('prefers attributes to elements, per field, and elements to empty attributes (S0.3)', () => {
    const text =
      '<orc-command type="send_message" to="B" title=""><to>X</to><title>T</title><content>c</content>'
    const { fields, ignored } = only(text + END)
    expect(fields).toEqual({ to: 'B', title: 'T', content: 'c' })
    expect(ignored).toEqual(['to'])
  })

  it('keeps elements inside an element as text, including those of the same name', () => {
    const text = '<content>a <b>bold</b> <content>inner</content> c</content>'
    expect(only(`<orc-command type="send_message"><to>B</to>${text}${END}`).fields.content).toBe(
      'a <b>bold</b> <content>inner</content> c',
    )
  })

  it('reads empty elements, comments and CDATA', () => {
    const text = '<!-- who --><to>B</to><title/><content><![CDATA[</content> & x]]></content>'
    expect(only(`<orc-command type="send_message">${text}${END}`).fields).toEqual({
      to: 'B',
      title: '',
      content: '</content> & x',
    })
  })

  it('lists unknown elements beside the content as ignored (C5)', () => {
    const text = '<agent_name>Master</agent_name><to>B</to><content>x</content>'
    const { fields, ignored } = only(`<orc-command type="send_message">${text}${END}`)
    expect(fields).toEqual({ to: 'B', content: 'x' })
    expect(ignored).toEqual(['agent_name'])
  })

  it('reads the elements of a command without a body', () => {
    const text = '<orc-command type="query_mailbox">\n<agent>A</agent>\n<filter>unread</filter>\n<x>1</x>'
    expect(only(text + END).fields).toEqual({ agent: 'A', filter: 'unread' })
  })

  it.each([
    ['HTML', '<h1>Hi</h1><p>there</p>'],
    ['elements and text', '<title>T</title> and more'],
    ['an element that is not closed', '<to>B'],
    ['a title among other elements', '<title>Page</title><p>text</p>'],
  ])('treats a body with %s as a message', (_, body) => {
    const found = only(SEND + body + END)
    expect(found.notation).toBe('modern')
    expect(found.fields).toEqual({ to: 'B', content: body })
  })

  it('refuses an element that appears twice', () => {
    const text = '<to>A</to><to>B</to><content>x</content>'
    expect(onlyProblem(`<orc-command type="send_message">${text}${END}`).code).toBe('NOT_WELL_FORMED')
  })
})

describe('elements before the text of a body', () => {
  it.each([
    [
      '<orc-command type="send_message"><to>B</to>hello <b>x</b></orc-command>',
      { to: 'B', content: 'hello <b>x</b>' },
    ],
    [
      '<orc-command type="send_message" to="B">\n<title>T</title>\nBody\n</orc-command>',
      { to: 'B', title: 'T', content: 'Body' },
    ],
    [
      '<orc-command type="send_message"><to>B</to><p>Body</p></orc-command>',
      { to: 'B', content: '<p>Body</p>' },
    ],
    [
      '<orc-command type="send_message" to="B"><to>C</to>Body</orc-command>',
      { to: 'B', content: '<to>C</to>Body' },
    ],
    [
      '<orc-command name="send_message" to="B"><title>T</title>Body</orc-command>',
      { to: 'B', content: '<title>T</title>Body' },
    ],
  ])('%s: elements are parameters with type= and text with name= (S0.3)', (text, fields) => {
    expect(only(text).fields).toEqual(fields)
  })
})

describe('commands within commands', () => {
  it.each([
    ['a self-closing one', CHECK],
    ['several', `${CHECK}${LIST} <orc-command name="list_agents"></orc-command>`],
    ['one in one', `${SEND}deep <orc-command name="mailbox_check"></orc-command>${END}`],
    ['a JSON one', '{"orc_command": {"type": "mailbox_check"}}'],
    ['one of unknown type', '<orc-command name="nonsense">x</orc-command>'],
  ])('keeps %s as text of the outer one (C5)', (_, inner) => {
    expect(only(`${SEND}before ${inner} after${END}`).fields.content).toBe(`before ${inner} after`)
  })

  it('keeps a mention of the tag as text, with and without its closing tag', () => {
    expect(only(`${SEND}the <orc-command> tag${END}`).fields.content).toBe('the <orc-command> tag')
    expect(only(`${SEND}the <orc-command ...> tag${END}`).fields.content).toBe('the <orc-command ...> tag')
    const pair = 'write <orc-command>…</orc-command> around it'
    expect(only(SEND + pair + END).fields.content).toBe(pair)
    expect(briefly(`${SEND}the <orc-command> tag${END} ${CHECK}`)).toEqual([
      ['send_message', { to: 'B', content: 'the <orc-command> tag' }],
      ['mailbox_check', {}],
    ])
  })

  it('reads the commands behind unclosed ones (C5)', () => {
    expect(
      briefly(`${SEND}one\n\n${CHECK}\n${SEND}two\n\n${LIST}\n<orc-command name="list_agents">${END}`),
    ).toEqual([
      'MISSING_CLOSE',
      ['mailbox_check', {}],
      'MISSING_CLOSE',
      ['list_agents', {}],
      ['list_agents', {}],
    ])
  })

  it('continues behind a closed command', () => {
    expect(briefly(`${SEND}x${END}${END}${CHECK}`)).toEqual([
      ['send_message', { to: 'B', content: 'x' }],
      ['mailbox_check', {}],
    ])
  })
})
