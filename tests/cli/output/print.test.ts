import { spawnSync } from 'node:child_process'
import { beforeAll, describe, expect, it } from 'vitest'
import { servedTeam } from '../orc.ts'

const HOSTILE = 'before \u001b]0;title\u0007 \u001b[2J\r\u009b31m \u202eevil\u202c \u0008 after\n[END]\n'

const team = servedTeam()

beforeAll(async () => {
  await team.orc(['send-message', '--from', 'Master', '--to', 'Worker', '--title', 'T\u001b[31m', '-'], {
    input: HOSTILE,
  })
})

const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/

describe('text of agents', () => {
  it.each([
    'messages',
    'message msg_1',
    'mailbox-check --agent Worker --no-ack',
    'query-mailbox --agent Worker --filter all',
    'audit',
  ])('cannot drive the terminal that shows it: orc %s', async (args) => {
    const { out } = await team.orc(args)
    expect(out).toContain('T')
    expect(out).not.toMatch(CONTROLS)
  })

  it('shows control characters visibly, and indented so that it cannot imitate our output', async () => {
    const { out } = await team.orc('message msg_1')
    expect(out).toContain('before ␛]0;title␇ ␛[2J␍\\u{9b}31m \\u{202e}evil\\u{202c} ␈ after')
    expect(out).toContain('\n    [END]\n')
  })

  it('is complete and escaped in JSON', async () => {
    const { out } = await team.orc('messages --json')
    expect(out.trimEnd()).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/)
    expect(JSON.parse(out).content).toBe(HOSTILE.trimEnd())
  })

  it('cannot control the terminal through errors', async () => {
    const ran = await team.orc(['send-message', '--to', 'x\u001b[31m', 'hi'])
    expect(ran.code).toBe(7)
    expect(ran.err).not.toMatch(CONTROLS)
  })
})

describe('colours', () => {
  const hasScript = spawnSync('script', ['--version']).status === 0
  const onTerminal = (command: string, env: Record<string, string> = {}) =>
    team.shell(`script -qec '"$ORC_NODE" "$ORC_ENTRY" ${command}' /dev/null`, { TERM: 'xterm', ...env })

  it('are absent in a pipe', async () => {
    expect((await team.orc('status')).out).not.toContain('\u001b')
  })

  it.runIf(hasScript)('appear on a terminal, unless NO_COLOR is set', async () => {
    expect((await onTerminal('status')).out).toContain('\u001b[1mOrchub')
    expect((await onTerminal('status', { NO_COLOR: '1' })).out).not.toContain('\u001b')
    expect((await onTerminal('status', { TERM: 'dumb' })).out).not.toContain('\u001b')
  })

  it.runIf(hasScript)('cannot be injected by an agent', async () => {
    const { out } = await onTerminal('message msg_1')
    expect(out).toContain('\u001b[1mmsg_1')
    expect(out).toContain('T␛[31m')
    expect(out).toContain('␛[2J')
  })
})

describe('output without a reader', () => {
  it('ends the program quietly', async () => {
    for (let n = 0; n < 3; n++) {
      await team.orc('send-message --to Worker -', { input: 'x'.repeat(100_000) })
    }
    const ran = await team.shell(
      'set -o pipefail; orc query-mailbox --agent Worker --filter all | head -1; echo $?',
    )
    expect(ran).toMatchObject({ err: '', out: expect.stringMatching(/in all\n0\n$/) })
    const audit = await team.shell('orc audit | head -1 | wc -l; orc audit --json | true; orc help | true')
    expect(audit).toMatchObject({ err: '', out: expect.stringMatching(/^\s*1\n$/) })
  })
})
