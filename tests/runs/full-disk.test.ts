/** A run while the disk is full, or does not take what is written to it. */
import type * as FileSystem from 'node:fs'
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { AppError } from '../../src/base/errors.ts'
import { MADE, openRunTeam, type RunTeam, statesOf } from './harness.ts'

/** Writing to such a file fails half-way. */
const disk = vi.hoisted(() => ({ refuses: undefined as RegExp | undefined, code: 'ENOSPC' }))

vi.mock('node:fs', async (importOriginal) => {
  const original = await importOriginal<typeof FileSystem>()
  const fault = (fd: number) => {
    if (disk.refuses?.test(original.readlinkSync(`/proc/self/fd/${fd}`)) !== true) return undefined
    return Object.assign(new Error(`${disk.code}: the disk, write`), { code: disk.code, syscall: 'write' })
  }
  const writeSync = (fd: number, data: Buffer, offset?: number, ...more: never[]) => {
    const refused = fault(fd)
    if (refused === undefined) return original.writeSync(fd, data, offset, ...more)
    original.writeSync(fd, data, 0, Math.floor(data.length / 2))
    throw refused
  }
  return { ...original, writeSync }
})

let team: RunTeam
beforeEach(async () => {
  disk.refuses = undefined
  disk.code = 'ENOSPC'
  team = await openRunTeam()
})
afterEach(async () => {
  disk.refuses = undefined
  await team.close()
})

const PLAN = `agents: { a: { command: "${MADE} whole > outbox/x", retries: 0 } }`
/** Filled under a hidden name. */
const IN_OUTPUTS = /\/_outputs\/\.a\.[^/]+\/x$/
const FULL = 'the disk is full: its outputs and its report wait for free space'

async function startFull(refuses: RegExp): Promise<string> {
  disk.refuses = refuses
  const id = await team.start(PLAN)
  await team.until(async () => (await team.see(id)).trouble === FULL)
  return id
}

const told = () =>
  team.entries.filter(({ type }) => /^run\.(noted|reported)$/.test(type)).map(({ text }) => text)

describe('while the disk is full', () => {
  it('_outputs holds only complete folders, and the run ends once all are there', async () => {
    const id = await startFull(IN_OUTPUTS)
    expect(readdirSync(team.pathIn(id, '_outputs'))).toEqual([])
    await team.clock.advance(5000)
    expect((await team.see(id)).run.head).toMatchObject({ outcome: 'completed', reportPending: true })
    expect(existsSync(team.pathIn(id, 'report.md'))).toBe(false)
    expect(await team.runs.list('open', 10)).toMatchObject([{ id, trouble: FULL }])
    disk.refuses = undefined
    const seen = await team.ended(id, 1000)
    expect(seen.trouble).toBeUndefined()
    expect(team.file(id, '_outputs', 'a', 'x')).toBe('whole\n')
    expect(team.file(id, 'report.md')).toContain('outbox/x')
    expect(told()).toEqual([`${id}: the report of round 1 is written`])
  })

  it('the report counts only once it is written, and no temporary files remain', async () => {
    const heard: (string | undefined)[] = []
    team.runs.onTrouble((_, text) => void heard.push(text))
    const id = await startFull(/\/\.report\.md\./)
    await team.clock.advance(3000)
    expect(told()).toEqual([])
    expect(readdirSync(team.pathIn(id)).sort()).toEqual(['_logs', '_outputs', 'a'])
    disk.refuses = undefined
    await team.ended(id, 1000)
    expect(team.file(id, 'report.md')).toContain('**completed**')
    expect(heard).toEqual([FULL, undefined])
    expect(team.runs.troubles()).toEqual([])
  })

  it('a person can give up the report', async () => {
    const id = await startFull(/\/\.report\./)
    expect(await team.runs.cancel(id, 'operator', 'no room')).toEqual({ run_id: id, cancelled: true })
    const seen = await team.ended(id)
    expect(seen.run.head).toMatchObject({
      outcome: 'completed',
      reportFault: 'cancelled by operator: no room',
    })
    expect(told()).toEqual([
      `${id}: the report of round 1 could not be written: cancelled by operator: no room`,
    ])
    disk.refuses = undefined
    await team.resume(id)
    expect((await team.ended(id)).run.head).not.toHaveProperty('reportFault')
    expect(team.file(id, 'report.md')).toContain('round 2')
  })

  it('the next service writes the report', async () => {
    const id = await startFull(IN_OUTPUTS)
    // As one that was killed in the middle of it leaves it.
    mkdirSync(team.pathIn(id, '_outputs', '.a.of-a-killed-one'))
    team = await team.reopened()
    disk.refuses = undefined
    await team.ended(id, 1000)
    expect(team.file(id, '_outputs', 'a', 'x')).toBe('whole\n')
    expect(readdirSync(team.pathIn(id, '_outputs'))).toEqual(['a'])
  })
})

describe('a permanent error', () => {
  it('appears in the notes and in the report', async () => {
    disk.refuses = IN_OUTPUTS
    disk.code = 'EIO'
    const id = await team.start(PLAN)
    const why = 'its outputs are not in _outputs: a cannot be accessed (EIO)'
    const seen = await team.ended(id)
    expect(seen.run.head).toMatchObject({ outcome: 'completed', unconsolidated: { a: why } })
    expect(existsSync(team.pathIn(id, '_outputs', 'a'))).toBe(false)
    expect(told()).toEqual([`${id} a: ${why}`, `${id}: the report of round 1 is written`])
    for (const form of ['md', 'html']) {
      expect(readFileSync(team.pathIn(id, `report.${form}`), 'utf8').replaceAll('\\', '')).toContain(
        'ts outputs are not in _outputs: a cannot be accessed (EIO)',
      )
    }
  })

  it('lets a run end without a report, and shows the reason', async () => {
    const id = await team.start(
      `agents: { a: { command: "mkdir -p ../report.md/x; ${MADE} x > outbox/x", retries: 0 } }`,
    )
    expect((await team.ended(id)).run.head.reportFault).toMatch(/^the report /)
    // Told a moment after it is decided: when it is stored.
    await team.until(async () => told().length > 0)
    expect(told()).toEqual([
      expect.stringMatching(`^${id}: the report of round 1 could not be written: the report `),
    ])
  })
})

/** Lets `a` complete, and refuses every write from the preparation of `b` on: its start is decided, and not stored. */
async function fullBeforeStart(id: string) {
  const { write } = team.store
  team.store.write = (work, place) =>
    existsSync(team.pathIn(id, 'b', 'inbox', 'a', 'x'))
      ? Promise.reject(new AppError('STORE_FULL', 'No space left'))
      : write(work, place)
  team.write('enough', '')
  await team.until(async () => team.runs.troubles().length > 0)
  return write
}

describe('while the store is full', () => {
  it('reads are answered, changes are refused, and the run continues once there is space', async () => {
    const id = await team.start(
      `agents: { a: { command: "until test -e ../../../enough; do sleep 0.02; done; ${MADE} x > outbox/x" } }`,
    )
    await team.becomes(id, 'a', 'running')
    const { write } = team.store
    team.store.write = () => Promise.reject(new AppError('STORE_FULL', 'No space left'))
    team.write('enough', '')
    await team.until(async () => team.runs.troubles().length > 0)
    const trouble = 'the disk is full: the run waits for free space'
    expect(team.runs.troubles()).toEqual([{ run: id, text: trouble, isFull: true }])
    // Unstored state is not shown.
    expect((await team.see(id)).run.nodes.get('a')!.state).toBe('running')
    expect((await team.see(id)).trouble).toBe(trouble)
    expect(await team.runs.list('all', 10)).toMatchObject([{ id, trouble }])
    expect(await team.resume(id)).toMatchObject({ resumed: false })
    await expect(team.start(PLAN)).rejects.toMatchObject({ code: 'STORE_FULL' })
    team.store.write = write
    const seen = await team.ended(id, 1000)
    expect(seen.run.head.outcome).toBe('completed')
    expect(team.runs.troubles()).toEqual([])
  })

  it('nothing starts twice if a halt comes before the write', async () => {
    const id = await team.start(`
agents:
  a: { command: "while ! test -e ../../../enough; do sleep 0.01; done; ${MADE} x > outbox/x" }
  b: { command: "echo ran >> ../../../count; ${MADE} x > outbox/x", depends_on: [a] }
`)
    await team.becomes(id, 'a', 'running')
    const write = await fullBeforeStart(id)
    team.store.write = write
    await team.halt.stop('operator', undefined)
    await team.halt.go('operator')
    // Long enough for what must not happen to happen.
    await new Promise((resolve) => setTimeout(resolve, 1500))
    expect(existsSync(join(team.plans, 'count'))).toBe(false)
    await team.ended(id, 1000)
    expect(readFileSync(join(team.plans, 'count'), 'utf8')).toBe('ran\n')
  })

  it('a cancellation reports each time that it is not stored yet, and counts once it is', async () => {
    const id = await team.start('agents: { a: { command: "sleep 300" } }')
    await team.becomes(id, 'a', 'running')
    const { write } = team.store
    team.store.write = () => Promise.reject(new AppError('STORE_FULL', 'No space left'))
    const refusal = {
      code: 'STORE_FULL',
      message: expect.stringContaining('cannot be stored yet'),
      hint: expect.stringContaining('the agents stop once the cancellation is stored'),
    }
    await expect(team.runs.cancel(id, 'operator', 'enough')).rejects.toMatchObject(refusal)
    await expect(team.runs.cancel(id, 'somebody', 'again')).rejects.toMatchObject(refusal)
    // Unstored state is not shown.
    expect((await team.see(id)).run.nodes.get('a')!.state).toBe('running')
    team.store.write = write
    const { head } = (await team.ended(id, 1000)).run
    expect(head).toMatchObject({ outcome: 'cancelled', cancelled: { by: 'operator', reason: 'enough' } })
    expect(team.entries.filter(({ type }) => type === 'run.cancelling')).toHaveLength(1)
  })

  it('a cancellation starts nothing whose start was not stored before', async () => {
    const id = await team.start(`
agents:
  a: { command: "while ! test -e ../../../enough; do sleep 0.01; done; ${MADE} x > outbox/x" }
  b: { command: "touch ../../../ran; exec sleep 300", depends_on: [a] }
`)
    await team.becomes(id, 'a', 'running')
    const write = await fullBeforeStart(id)
    await expect(team.runs.cancel(id, 'operator', 'enough')).rejects.toMatchObject({ code: 'STORE_FULL' })
    team.store.write = write
    const seen = await team.ended(id, 1000)
    expect(statesOf(seen)).toEqual({ a: 'completed', b: 'cancelled' })
    expect(existsSync(join(team.plans, 'ran'))).toBe(false)
  })

  it('a run that cannot be stored does not start, and leaves no folder', async () => {
    const { write } = team.store
    team.store.write = (work) =>
      write(async (tx) => {
        await work(tx)
        throw new AppError('STORE_FULL', 'No space left')
      })
    await expect(team.start(PLAN)).rejects.toMatchObject({ code: 'STORE_FULL' })
    expect(readdirSync(join(team.plans, 'runs'))).toEqual([])
    team.store.write = write
    const id = await team.start(PLAN)
    expect((await team.ended(id)).runFolder).toBe(team.pathIn(id))
    expect(readdirSync(join(team.plans, 'runs'))).toEqual([id])
  })

  it('a run that cannot be resumed stays as it ended, and can be resumed later', async () => {
    const id = await team.start(PLAN)
    await team.ended(id)
    const { write } = team.store
    team.store.write = () => Promise.reject(new AppError('STORE_FULL', 'No space left'))
    await expect(team.resume(id)).rejects.toMatchObject({ code: 'STORE_FULL' })
    expect((await team.see(id)).run.head).toMatchObject({ round: 1, outcome: 'completed' })
    expect(team.runs.troubles()).toEqual([])
    // No driver is left.
    expect(await team.runs.cancel(id, 'operator', 'enough')).toEqual({ run_id: id, cancelled: false })
    await expect(team.resume(id)).rejects.toMatchObject({ code: 'STORE_FULL' })
    team.store.write = write
    expect(await team.resume(id)).toMatchObject({ round: 2, resumed: true })
    expect((await team.ended(id)).run.head).toMatchObject({ round: 2, outcome: 'completed' })
  })
})
