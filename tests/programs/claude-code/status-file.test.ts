import { spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { findStatusFile } from '../../../src/programs/claude-code/activity.ts'

describe('the status file of Claude Code', () => {
  let folder: string
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'orchub-status-'))
  })
  afterEach(() => rm(folder, { recursive: true }))

  async function write(pid: number, sessionId: string, startedAt: number) {
    const file = join(folder, `${pid}.json`)
    await writeFile(file, JSON.stringify({ sessionId, status: 'busy', startedAt }))
    return file
  }

  it('belongs to a running process of the session, not to a killed one (C27)', async () => {
    const { pid: dead } = spawnSync(process.execPath, ['--version'])
    await write(dead, 'one', 2000)
    expect(await findStatusFile(folder, 'one')).toBeUndefined()
    const own = await write(process.pid, 'one', 1000)
    await write(process.ppid, 'another', 3000)
    expect(await findStatusFile(folder, 'one')).toBe(own)
  })
})
