import type * as FileSystem from 'node:fs'
import { expect, it, onTestFinished, vi } from 'vitest'

/** The disk, which takes its time. */
const disk = vi.hoisted(() => ({ waiting: [] as (() => void)[], isHeld: false }))

vi.mock('node:fs', async (importOriginal) => {
  const original = await importOriginal<typeof FileSystem>()
  const fdatasync = (file: number, told: (error: Error | null) => void) => {
    if (disk.isHeld) disk.waiting.push(() => original.fdatasync(file, told))
    else original.fdatasync(file, told)
  }
  return { ...original, fdatasync }
})

const { existsSync } = await import('node:fs')
const { join } = await import('node:path')
const { MADE, openRunTeam, statesOf } = await import('./run-harness.ts')

function letGo() {
  disk.isHeld = false
  for (const sync of disk.waiting.splice(0)) sync()
}

it('begins a command when its commit is written, and tells nobody before that is on disk', async () => {
  const team = await openRunTeam()
  onTestFinished(async () => {
    letGo()
    await team.close()
  })
  const id = await team.start(`
agents:
  first: { command: "while ! test -e ../../../go; do sleep 0.02; done; ${MADE} x > outbox/x" }
  second: { command: "touch ../../../begun; ${MADE} x > outbox/x", depends_on: [first] }
`)
  await team.until(async () => (await team.node(id, 'first')).started)
  disk.isHeld = true
  team.write('go', '')
  // What is written before its start, the end of the first, say, goes on to the disk after a while.
  for (let looks = 1; !existsSync(join(team.plans, 'begun')); looks++) {
    if (looks % 300 === 0) for (const sync of disk.waiting.splice(0)) sync()
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  expect(disk.waiting.length).toBe(1)
  const seen = team.see(id).then(() => 'seen')
  expect(await Promise.race([seen, new Promise((resolve) => setTimeout(resolve, 100))])).toBeUndefined()
  expect(team.entries.filter(({ text }) => text.includes('second is running'))).toEqual([])
  letGo()
  expect(await seen).toBe('seen')
  expect(statesOf(await team.ended(id))).toEqual({ first: 'completed', second: 'completed' })
})
