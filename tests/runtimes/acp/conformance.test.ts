import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAcpRuntime } from '../../../src/runtimes/acp/runtime.ts'
import { QUIET_LOG } from '../../fakes/quiet-log.ts'
import { REAL_CLOCK } from '../../fakes/real-clock.ts'
import { describeRuntime } from '../conformance.ts'
import { fakeAgent, isRunning, recordedIn } from './harness.ts'

describeRuntime('acp', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'orc-acp-'))
  return {
    runtime: createAcpRuntime({
      clock: REAL_CLOCK,
      log: QUIET_LOG,
      bin: 'orc',
      limits: { graceMs: 1000, quietMs: 100 },
    }),
    agent: (over = {}) => ({
      name: 'coder',
      program: 'any',
      settings: fakeAgent(folder),
      prompt: 'You write code.',
      cwd: folder,
      folder: join(folder, 'private'),
      savedState: undefined,
      nonce: 'n1',
      credentials: async () => ({ url: 'http://127.0.0.1:9', token: 'orc_token' }),
      ...over,
    }),
    wrong: { settings: { command: 'x', env: { A: 1 } }, path: ['env', 'A'] },
    missing: { command: 'no-such-program-anywhere' },
    endsAtOnce: { settings: fakeAgent(folder, ['--exit-at-once']), lastWords: 'no configuration found' },
    leftovers: async () =>
      recordedIn<{ pid: number }>(folder, 'start')
        .map(({ pid }) => pid)
        .filter(isRunning),
    close: () => rm(folder, { recursive: true, force: true, maxRetries: 5 }),
  }
})
