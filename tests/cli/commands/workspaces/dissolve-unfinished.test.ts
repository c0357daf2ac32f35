/** The workspaces of a run that has ended while its outputs wait for disk space. */

import type * as FileSystem from 'node:fs'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { OPERATOR, send } from '../../../harness/engine.ts'
import { createTeamFolder, type TeamFolder } from '../../orc.ts'

const disk = vi.hoisted(() => ({ isFull: false }))

vi.mock('node:fs', async (importOriginal) => {
  const original = await importOriginal<typeof FileSystem>()
  const writeSync = (fd: number, ...rest: unknown[]) => {
    if (disk.isFull && original.readlinkSync(`/proc/self/fd/${fd}`).includes('/_outputs/'))
      throw Object.assign(new Error('ENOSPC: the disk, write'), { code: 'ENOSPC', syscall: 'write' })
    return (original.writeSync as (...all: unknown[]) => number)(fd, ...rest)
  }
  return { ...original, writeSync }
})

let team: TeamFolder
beforeEach(() => {
  team = createTeamFolder()
})
afterEach(async () => {
  disk.isFull = false
  await team.close()
})

const PLAN = 'agents: { a: { command: "echo Made it. > outbox/summary.md; echo x > outbox/x", retries: 0 } }'
const inRun = (...parts: string[]) => join(team.folder, 'runs/run_1', ...parts)

it.runIf(process.platform === 'linux')('are not dissolved before the outputs are discarded', async () => {
  disk.isFull = true
  const { engine } = await team.start()
  await send(engine, OPERATOR, 'start_run', { plan: PLAN, folder: team.folder })
  await vi.waitFor(() => expect(engine.runs.troubles()).toHaveLength(1), 10_000)
  // The run ends once the outputs are written.
  expect((await team.orc('run show run_1')).out).toMatch(/\(run_1\) is gathering its outputs: 1 of 1 agent/)
  const [shown] = (await team.orc('run show run_1 --json')).json()
  expect(shown).toMatchObject({ state: 'running', gathering: true })
  expect(shown).not.toHaveProperty('ended_at')
  for (const force of ['', ' --force']) {
    expect(await team.orc(`workspace dissolve runs/run_1${force}`)).toMatchObject({
      code: 1,
      err: expect.stringMatching(/outputs of run_1 are not in _outputs yet[\s\S]*orc run cancel run_1/),
    })
  }
  await team.stop()
  expect(await team.orc('workspace dissolve runs/run_1')).toMatchObject({
    code: 1,
    err: expect.stringMatching(/outputs of run_1 are not in _outputs yet[\s\S]*--resume run_1[\s\S]*--force/),
  })
  expect(existsSync(inRun('a', 'outbox', 'x'))).toBe(true)
  expect((await team.orc('workspace dissolve runs/run_1 --force')).code).toBe(0)
  expect(existsSync(inRun('a'))).toBe(false)
})

it.runIf(process.platform === 'linux')(
  'are dissolved once the disk has room, or a person discards them',
  async () => {
    disk.isFull = true
    const { engine } = await team.start()
    for (const id of ['run_1', 'run_2']) {
      await send(engine, OPERATOR, 'start_run', { plan: PLAN, folder: team.folder })
      await vi.waitFor(() => expect(engine.runs.troubles().map(({ run }) => run)).toContain(id), 10_000)
    }
    expect((await team.orc('run cancel run_2')).code).toBe(0)
    await vi.waitFor(() => expect(engine.runs.troubles()).toHaveLength(1), 10_000)
    expect((await team.orc('workspace dissolve runs/run_2')).code).toBe(0)
    disk.isFull = false
    await vi.waitFor(() => expect(engine.runs.troubles()).toEqual([]), 10_000)
    await vi.waitFor(() => expect(existsSync(inRun('report.md'))).toBe(true), 10_000)
    expect((await team.orc('workspace dissolve runs/run_1')).code).toBe(0)
    expect(existsSync(inRun('_outputs', 'a', 'x'))).toBe(true)
  },
)
