/** A message is given to its agent only once it is on disk. */
import type * as FileSystem from 'node:fs'
import { afterEach, expect, it, vi } from 'vitest'
import type { ConfigInput } from '../../src/config/config.ts'

/** A disk whose syncs the tests hold back. */
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

const { createPuppets } = await import('../fakes/puppet-runtime.ts')
const { openTestEngine } = await import('../harness/engine.ts')

type TestEngine = Awaited<ReturnType<typeof openTestEngine>>

let engine: TestEngine
afterEach(async () => {
  disk.isHeld = false
  for (const told of disk.waiting.splice(0)) told(null)
  await engine.close()
})

const TEAM = {
  agents: { Master: {}, Worker: { program: 'any', parent: 'Master' } },
} satisfies ConfigInput

async function openIdle() {
  const puppets = createPuppets()
  engine = await openTestEngine(TEAM, { runtimes: [puppets] })
  await engine.clock.advance(0)
  puppets.of('Worker').become('idle')
  await engine.clock.advance(0)
  return puppets.of('Worker')
}

const send = () =>
  engine.say('Master', 'send_message', { to: 'Worker', title: 'Build', content: 'Look at the build.' })

it('hands over a message only when it is on disk (C12)', async () => {
  const worker = await openIdle()
  disk.isHeld = true
  const sending = send()
  await expect.poll(() => disk.waiting.length).toBe(1)
  await engine.clock.advance(0)
  expect(worker.turns).toEqual([])
  disk.isHeld = false
  for (const told of disk.waiting.splice(0)) told(null)
  await sending
  await engine.clock.advance(0)
  expect(worker.turns).toEqual([{ ids: ['msg_1'], text: expect.stringContaining('the build') }])
})

it('hands over no message when the disk fails (C12)', async () => {
  const worker = await openIdle()
  disk.isHeld = true
  const sending = send().catch((error: unknown) => error)
  await expect.poll(() => disk.waiting.length).toBe(1)
  const failed = Object.assign(new Error('EIO: i/o error'), { code: 'EIO', syscall: 'fdatasync' })
  for (const told of disk.waiting.splice(0)) told(failed)
  expect(await sending).toMatchObject({ code: 'STORE_UNAVAILABLE' })
  await engine.clock.advance(60_000)
  expect(worker.turns).toEqual([])
})
