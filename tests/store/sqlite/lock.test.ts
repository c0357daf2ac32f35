import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openSqliteStore } from '../../../src/store/sqlite/open.ts'
import { createSqliteFixture, type SqliteFixture } from '../sqlite-fixture.ts'
import { send, storeOptions } from '../store-fixture.ts'

let fixture: SqliteFixture
beforeEach(async () => {
  fixture = await createSqliteFixture()
})
afterEach(() => fixture.clear())

async function startHolder() {
  const holder = spawn(process.execPath, [join(import.meta.dirname, 'holder.child.ts'), fixture.file], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  await once(holder.stdout, 'data')
  return holder
}

describe('a store file', () => {
  it('has one daemon: a second one names the first, and gets the file when the first is killed', async () => {
    const holder = await startHolder()
    try {
      await expect(fixture.open()).rejects.toMatchObject({
        code: 'STORE_LOCKED',
        message: expect.stringContaining(`process ${holder.pid} on`),
      })
      const second = spawnSync(process.execPath, [join(import.meta.dirname, 'holder.child.ts'), fixture.file])
      expect(second.stderr.toString()).toContain(`process ${holder.pid} on`)
    } finally {
      holder.kill('SIGKILL')
      await once(holder, 'exit')
    }
    // The lease hasn't expired, but the kernel has released the file lock.
    expect(await send(await fixture.open())).toBe(2)
  })

  it('is accessible to its owner only', async () => {
    await send(await fixture.open())
    for (const suffix of ['', '-wal', '.holder']) {
      expect(existsSync(fixture.file + suffix)).toBe(true)
      expect(statSync(fixture.file + suffix).mode & 0o077).toBe(0)
    }
  })

  it('that is not a database is reported as damaged', async () => {
    writeFileSync(fixture.file, 'this is not a database, but it is long enough to look like one '.repeat(100))
    await expect(fixture.open()).rejects.toMatchObject({ code: 'STORE_CORRUPT' })
  })

  it('in an impossible location is reported as unavailable', async () => {
    writeFileSync(join(dirname(fixture.file), 'file'), '')
    const impossible = join(dirname(fixture.file), 'file', 'store.db')
    await expect(openSqliteStore(impossible, storeOptions({}))).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    })
  })
})
