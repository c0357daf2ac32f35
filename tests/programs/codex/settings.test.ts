import { describe, expect, it } from 'vitest'
import { createCodex } from '../../../src/programs/codex/program.ts'

const { check: checkSettings } = createCodex({ log: { warn() {} } })

describe('settings of codex', () => {
  it('needs none', () => {
    expect(checkSettings(undefined)).toEqual([])
  })

  it('accepts the settings of Codex', () => {
    const settings = {
      command: '/opt/codex',
      args: ['--search', '-c', 'model_reasoning_effort="high"'],
      env: { CODEX_HOME: '/home/me/other' },
      model: 'gpt-6',
      sandbox: 'workspace-write',
      approval_policy: 'on-request',
      trust_folder: true,
    }
    expect(checkSettings(settings)).toEqual([])
  })

  it.each([
    [{ sandbox: 'none' }, ['sandbox']],
    // A fatal mistake in this version.
    [{ approval_policy: 'untrusted' }, ['approval_policy']],
    [{ args: ['--search', '--remote', 'ws://127.0.0.1:1'] }, ['args', 1]],
    [{ args: ['--cd=/'] }, ['args', 0]],
    [{ env: { A: 1 } }, ['env', 'A']],
  ])('says where %j is wrong, and what to do', (settings, path) => {
    expect(checkSettings(settings)).toEqual([
      { path, message: expect.any(String), hint: expect.stringMatching(/.{10}/) },
    ])
  })

  it('names an unknown setting', () => {
    expect(checkSettings({ modle: 'gpt-6' })).toEqual([
      { path: [], message: expect.stringContaining('modle'), hint: expect.stringContaining('model') },
    ])
  })
})
