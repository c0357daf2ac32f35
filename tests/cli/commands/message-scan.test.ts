import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { sharedTeam } from '../orc.ts'

const team = sharedTeam()

const scan = async (input: string) => (await team.orc('scan --json', { input })).json()
const command = (type: string, fields: Record<string, string>, place: { offset: number; line: number }) => ({
  ok: true,
  type,
  fields,
  ...place,
})
const START = { offset: 0, line: 1 }

describe('orc message scan (S0.22)', () => {
  it('finds commands without checking values or adding defaults', async () => {
    expect(await scan('<orc-command from="A" to="B" name="send_message">hi</orc-command>')).toEqual([
      command('send_message', { from: 'A', to: 'B', content: 'hi' }, START),
    ])
    expect(await scan('{"orc_command": {"type": "mailbox_check"}}')).toEqual([
      command('mailbox_check', {}, START),
    ])
    expect(await scan('Hi.\n<ORC-COMMAND NAME="UPDATE_STATUS" STATUS="Working" Current_Task="x"/>')).toEqual([
      command('update_status', { status: 'Working', current_task: 'x' }, { offset: 4, line: 2 }),
    ])
  })

  it.each([
    [
      'two commands',
      '<orc-command name="mailbox_check" /> text <orc-command name="list_agents"></orc-command>',
      ['mailbox_check', 'list_agents'],
    ],
    ['a command in a fence', '```\n<orc-command name="mailbox_check"/>\n```\n', ['IN_CODE_BLOCK']],
    ['one in inline code', 'like `<orc-command name="mailbox_check"/>` so', ['IN_CODE_BLOCK']],
    [
      'an unclosed one before another',
      '<orc-command name="send_message" to="B">hi\n\n<orc-command name="mailbox_check"/>',
      ['MISSING_CLOSE', 'mailbox_check'],
    ],
    ['smart quotes', '<orc-command name=“send_message” to=“B”>x</orc-command>', ['NON_ASCII_QUOTES']],
    [
      'quotes that do not match',
      `<orc-command name="send_message' to="B">x</orc-command>`,
      ['MISMATCHED_QUOTES'],
    ],
    [
      'a command that quotes another',
      '<orc-command name="send_message" to="B">use <orc-command name="mailbox_check"/> now</orc-command>',
      ['send_message'],
    ],
  ])('shows %s', async (_, input, wanted) => {
    const found = (await scan(input)) as { ok: boolean; type?: string; code?: string }[]
    expect(found.map((one) => one.type ?? one.code)).toEqual(wanted)
  })

  it('gives code, reason and position of what is not extracted', async () => {
    expect(await scan('x\n`<orc-command name="mailbox_check"/>`')).toEqual([
      { ok: false, code: 'IN_CODE_BLOCK', message: expect.any(String), offset: expect.any(Number), line: 2 },
    ])
  })

  it('reads a file or standard input, needs no team, and prints text for people', async () => {
    const file = join(team.folder, 'text.md')
    writeFileSync(
      file,
      'a\n<orc-command name="send_message" to="B" colour="red">one\ntwo\u001b[31m</orc-command>\n`<orc-command name="list_agents"/>`\n',
    )
    const ran = await team.orc(['scan', file], { cwd: '/' })
    expect(ran.code).toBe(0)
    expect(ran.out).toMatch(
      /^line 2 {2}send_message\n {4}to: B\n {4}content:\n {8}one\n {8}two␛\[31m\n {4}ignored: colour\nline 4 {2}IN_CODE_BLOCK/,
    )
    expect(ran.err).toBe('1 command, 1 quoted and ignored\n')
  })

  it('says when a command would be refused because a field is missing', async () => {
    const input = [
      '<orc-command name="send_message">hi</orc-command>',
      '<orc-command name="send_message" to=""/>',
      '<orc-command name="send_message" to="B">hi</orc-command>',
    ].join('\n')
    const { out } = await team.orc('scan', { input })
    expect(out.match(/would refuse it: .*/g)).toEqual([
      'would refuse it: to is missing',
      'would refuse it: to, content are missing',
    ])
    expect(await scan(input)).toMatchObject([{ ok: true }, { ok: true }, { ok: true }])
  })

  it('fails on mistakes only with --strict, and never on quoted commands', async () => {
    const bad = '<orc-command name="send_message" to="B">'
    expect((await team.orc('scan', { input: bad })).code).toBe(0)
    expect((await team.orc('scan --strict', { input: bad })).code).toBe(1)
    expect((await team.orc('scan --strict', { input: '`<orc-command name="list_agents"/>`' })).code).toBe(0)
    await team.fails('scan nowhere.txt', 7, 'nowhere.txt: no such file')
  })
})
