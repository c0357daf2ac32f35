/** A cancelled start no longer waits for its program. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createCodex } from '../../src/programs/codex/program.ts'
import { createOpencode } from '../../src/programs/opencode/program.ts'
import { createRecordingPort } from '../fakes/recording-port.ts'
import { createFakePane } from './fake-pane.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'orc-called-off-'))
  writeFileSync(join(folder, 'opencode-password'), 'secret')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const log = { warn() {} }

describe.each([
  ['codex', createCodex({ log }), () => ({ socket: join(folder, 'none.sock'), launchedAt: 1, threads: [] })],
  // No server listens on that port.
  ['opencode', createOpencode({ log }), () => ({ port: 9, conversations: [] })],
] as const)('a start of %s', (_name, program, savedState) => {
  it('ends soon after it is cancelled (C15)', async () => {
    const reason = new Error('it was stopped')
    const gone = new AbortController()
    const order = { name: 'dev', settings: {}, cwd: folder, folder, nonce: 'n', isReattached: false }
    const following = program.follow(
      { ...order, savedState: savedState(), signal: gone.signal },
      createFakePane(),
      createRecordingPort(),
    )
    setTimeout(() => gone.abort(reason), 300)
    const before = performance.now()
    await expect(following).rejects.toBe(reason)
    expect(performance.now() - before).toBeLessThan(5000)
  })
})
