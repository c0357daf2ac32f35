/** Folders that an agent made read-only, or closed to all, for a user who is not root and whom the modes bind. */
import { chmodSync, chownSync, readdirSync, readFileSync, rmdirSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readAttempts } from '../../../src/workspaces/survey.ts'
import { clearAttempt, keepAttempt, prepareInbox, renewSkill } from '../../../src/workspaces/workspaces.ts'
import { expectOk, instructions, makePlace, makeWorkspace, write } from '../harness.ts'

const NOBODY = 65534
const isRoot = process.getuid?.() === 0

async function asUser<T>(work: (place: string) => Promise<T>): Promise<T> {
  const place = makePlace()
  if (!isRoot) return await work(place)
  chownSync(place, NOBODY, NOBODY)
  process.seteuid!(NOBODY)
  try {
    return await work(place)
  } finally {
    process.seteuid!(0)
  }
}

/** Windows has no such modes, and a worker thread cannot switch users. */
describe.skipIf(process.getuid === undefined || (isRoot && process.seteuid === undefined))(
  'an attempt after one',
  () => {
    it.each([
      ['whose outbox is read-only', 0o555, 'outbox'],
      ['whose outbox is closed', 0o000, 'outbox'],
      ['whose workspace is read-only', 0o555, '.'],
      ['whose workspace is closed', 0o000, '.'],
      ['that made attempts/ read-only', 0o555, 'attempts'],
      ['that closed attempts/', 0o000, 'attempts'],
    ])('%s starts fresh and keeps the earlier outputs', async (_, mode, folder) => {
      await asUser(async (place) => {
        const workspace = await makeWorkspace('worker', place)
        write(workspace, { 'outbox/first/x': '1' })
        expectOk(await keepAttempt(workspace, 1, 'no reason'))
        write(workspace, { 'outbox/second/x': '2' })
        chmodSync(join(workspace, folder), mode)
        const wanted = {
          path: workspace,
          name: 'worker',
          template: 'generic',
          objective: 'Another.',
        } as const
        expectOk(await renewSkill(wanted))
        expectOk(await prepareInbox({ workspace, task: 'Another', instructions }))
        expectOk(await keepAttempt(workspace, 2, 'no reason'))
        expect(readdirSync(join(workspace, 'outbox'))).toEqual([])
        expect(statSync(join(workspace, 'outbox')).mode & 0o700).toBe(0o700)
        expect(readFileSync(join(workspace, 'attempts/1/outbox/first/x'), 'utf8')).toBe('1')
        expect(readFileSync(join(workspace, 'attempts/2/outbox/second/x'), 'utf8')).toBe('2')
        expect(expectOk(await readAttempts(workspace))).toHaveLength(2)
      })
    })

    it('that was never stored starts fresh despite missing permissions', async () => {
      await asUser(async (place) => {
        const workspace = await makeWorkspace('worker', place)
        write(workspace, { 'outbox/deep/x': '1' })
        for (const folder of ['outbox/deep', 'outbox', '.']) chmodSync(join(workspace, folder), 0o000)
        expectOk(await clearAttempt(workspace))
        expect(readdirSync(join(workspace, 'outbox'))).toEqual([])
      })
    })

    it('that left links does not change the mode of their targets', async () => {
      await asUser(async (place) => {
        const workspace = await makeWorkspace('worker', place)
        write(place, { 'away/x': '' })
        const away = join(place, 'away')
        chmodSync(away, 0o555)
        rmdirSync(join(workspace, 'outbox'))
        symlinkSync(away, join(workspace, 'outbox'))
        expectOk(await keepAttempt(workspace, 1))
        symlinkSync(away, join(workspace, 'attempts/2'))
        expect((await keepAttempt(workspace, 2)).ok).toBe(false)
        symlinkSync(away, join(place, 'link'))
        expect((await keepAttempt(join(place, 'link'), 1)).ok).toBe(false)
        expect(statSync(away).mode & 0o777).toBe(0o555)
        expect(readdirSync(away)).toEqual(['x'])
        chmodSync(away, 0o755)
      })
    })
  },
)
