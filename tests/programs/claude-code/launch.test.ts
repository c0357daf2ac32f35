import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { createClaudeCode } from '../../../src/programs/claude-code/program.ts'
import type { ClaudeSavedState } from '../../../src/programs/claude-code/session.ts'

const root = mkdtempSync(join(tmpdir(), 'claude-launch-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))
const command = join(root, 'claude')
writeFileSync(command, '#!/bin/sh\n')
chmodSync(command, 0o755)

const program = createClaudeCode({ log: { warn() {} } })
const order = (extra: object = {}) => ({
  ...{ name: 'dev', prompt: 'Your role: "dev" $HOME', cwd: root, folder: join(root, 'agent'), nonce: 'n' },
  ...{ url: 'http://127.0.0.1:7420', token: 'orc_secret', resume: undefined },
  settings: { command, env: { CLAUDE_CONFIG_DIR: join(root, 'config') } },
  ...extra,
})
const after = (argv: readonly string[], flag: string) => argv[argv.indexOf(flag) + 1]!

describe('launching Claude Code', () => {
  it('passes role, hooks and MCP in its own files, and writes the token nowhere', async () => {
    const { argv, savedState } = await program.launch(order())
    expect(argv[0]).toBe(command)
    expect(readFileSync(after(argv, '--append-system-prompt-file'), 'utf8')).toBe('Your role: "dev" $HOME')
    const settings = JSON.parse(readFileSync(after(argv, '--settings'), 'utf8'))
    expect(settings.hooks.Stop[0].hooks[0]).toMatchObject({
      type: 'http',
      url: 'http://127.0.0.1:7420/hooks',
      headers: { Authorization: 'Bearer $ORC_TOKEN' },
      allowedEnvVars: ['ORC_TOKEN'],
    })
    expect(settings.hooks.SessionStart[0].hooks[0]).toMatchObject({
      type: 'command',
      command: '"$ORC_BIN" hook',
    })
    const servers = JSON.parse(readFileSync(after(argv, '--mcp-config'), 'utf8'))
    expect(servers.mcpServers.orc).toMatchObject({ url: 'http://127.0.0.1:7420/mcp', alwaysLoad: true })
    const written = readdirSync(join(root, 'agent')).map((name) =>
      readFileSync(join(root, 'agent', name), 'utf8'),
    )
    expect([...written, argv.join(' '), JSON.stringify(savedState)].join('\n')).not.toContain('orc_secret')
  })

  it('starts a conversation with its own id, and asks before it acts', async () => {
    const { argv, savedState } = await program.launch(order())
    expect(after(argv, '--session-id')).toBe((savedState as ClaudeSavedState).sessionId)
    expect((savedState as ClaudeSavedState).begun).toBe((savedState as ClaudeSavedState).sessionId)
    expect(after(argv, '--permission-mode')).toBe('default')
    expect(argv).not.toContain('--resume')
  })

  it('resumes the saved conversation', async () => {
    const transcript = join(root, 'old.jsonl')
    writeFileSync(transcript, '{}\n')
    const { savedState } = await program.launch(order())
    const resume = {
      ...(savedState as ClaudeSavedState),
      sessionId: 'abc',
      transcript,
      statusFile: '/gone/1.json',
    }
    const resumed = await program.launch(order({ resume }))
    expect(after(resumed.argv, '--resume')).toBe('abc')
    expect(resumed.argv).not.toContain('--session-id')
    expect(resumed.savedState).toMatchObject({ sessionId: 'abc', transcript })
    expect((resumed.savedState as ClaudeSavedState).statusFile).toBeUndefined()
  })

  it('reports that a conversation no longer exists', async () => {
    const { savedState } = await program.launch(order())
    const position = { inode: '1', offset: 5, mark: '' }
    const resume = { ...(savedState as ClaudeSavedState), transcript: join(root, 'gone.jsonl'), position }
    await expect(program.launch(order({ resume }))).rejects.toMatchObject({
      code: 'NOT_FOUND',
      hint: expect.stringContaining('gone.jsonl no longer exists'),
    })
  })

  it('starts anew if there was no prompt yet', async () => {
    const { savedState } = await program.launch(order())
    const resume = { ...(savedState as ClaudeSavedState), transcript: join(root, 'never.jsonl') }
    expect((await program.launch(order({ resume }))).argv).toContain('--session-id')
  })

  it('says how to install the program if it is missing', async () => {
    await expect(program.launch(order({ settings: { command: 'no-such-claude' } }))).rejects.toMatchObject({
      code: 'PROGRAM_MISSING',
      hint: expect.stringContaining('npm install'),
    })
  })
})

describe('the settings of Claude Code', () => {
  it('may be omitted', () => {
    expect(program.check(undefined)).toEqual([])
  })

  it.each([
    [{ modle: 'opus' }, []],
    [{ permission_mode: 'yolo' }, ['permission_mode']],
    [{ args: ['--verbose', '--settings=x.json'] }, ['args', 1]],
  ])('%j are refused with a path and a hint', (settings, path) => {
    expect(program.check(settings)).toEqual([
      { path, message: expect.any(String), hint: expect.stringMatching(/.+/) },
    ])
  })
})
