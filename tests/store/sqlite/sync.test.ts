import type * as FileSystem from 'node:fs'
import { expect, it, onTestFinished, vi } from 'vitest'

/** Holds back syncs until the test lets them finish. */
const disk = vi.hoisted(() => ({
  waiting: [] as ((error: Error | null) => void)[],
  isHeld: false,
}))

vi.mock('node:fs', async (importOriginal) => {
  const original = await importOriginal<typeof FileSystem>()
  const fdatasync = (file: number, told: (error: Error | null) => void) => {
    if (disk.isHeld) disk.waiting.push(told)
    else original.fdatasync(file, told)
  }
  return { ...original, fdatasync }
})

const { setTimer } = await import('../../../src/store/timers.ts')
const { createSqliteFixture } = await import('../sqlite-fixture.ts')

async function openStore() {
  const fixture = await createSqliteFixture()
  onTestFinished(async () => {
    disk.isHeld = false
    for (const told of disk.waiting.splice(0)) told(null)
    await fixture.clear()
  })
  return await fixture.open()
}

const turn = () => new Promise((resolve) => setTimeout(resolve, 20))
const timers = 'SELECT ref FROM timers'

it('reveals a commit to neither writer nor readers before the log is on disk (C12)', async () => {
  const store = await openStore()
  disk.isHeld = true
  const told: string[] = []
  const written = store.write((tx) => setTimer(tx, 'kind', 'one', 1)).then(() => told.push('written'))
  await turn()
  const read = Promise.resolve(store.all(timers)).then((rows) => told.push(`read ${rows.length}`))
  await turn()
  expect(told).toEqual([])
  expect(disk.waiting.length).toBe(1)
  disk.waiting.pop()!(null)
  await Promise.all([written, read])
  expect(told.toSorted()).toEqual(['read 1', 'written'])
})

it('does not block the event loop during the sync', async () => {
  const store = await openStore()
  disk.isHeld = true
  const written = store.write((tx) => setTimer(tx, 'kind', 'one', 1))
  await turn()
  const next = store.write((tx) => setTimer(tx, 'kind', 'two', 1))
  await turn()
  // The second commit waits for the first; the event loop does not.
  expect(disk.waiting.length).toBe(1)
  disk.isHeld = false
  disk.waiting.pop()!(null)
  await Promise.all([written, next])
  expect(await store.all(timers)).toHaveLength(2)
})

it('confirms nothing after the disk failed once, because a later sync would hide the loss (C12)', async () => {
  const store = await openStore()
  store.throwIfFailed()
  disk.isHeld = true
  const told: unknown[] = []
  store.onCommit((entries) => told.push(...entries))
  const entry = { type: 'run.noted', class: 'internal', actor: 'orchestrator', text: 'it' } as const
  const written = store.write((tx) => tx.audit(entry))
  await turn()
  const read = Promise.resolve(store.all(timers))
  disk.isHeld = false
  const failure = { code: 'STORE_UNAVAILABLE', hint: expect.stringContaining('restart the service') }
  disk.waiting.pop()!(Object.assign(new Error('ENOSPC: no space'), { code: 'ENOSPC', syscall: 'fdatasync' }))
  await expect(written).rejects.toMatchObject(failure)
  await expect(read).rejects.toMatchObject(failure)
  // The disk would accept this write without an error.
  await expect(store.write((tx) => tx.audit(entry))).rejects.toMatchObject(failure)
  await expect((async () => await store.all(timers))()).rejects.toMatchObject(failure)
  expect(() => store.throwIfFailed()).toThrow('could not be synced to disk')
  expect(told).toEqual([])
})
