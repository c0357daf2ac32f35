import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { boxWith, message, openRig, putBack, type Rig, turn } from './rig.ts'

const after = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

describe('finding out whether Escape withdrew a prompt', () => {
  let rig: Rig
  let readings: NodeJS.Timeout | undefined
  afterEach(async () => {
    clearInterval(readings)
    await rig.close()
  })

  /** Our message is submitted; only its hook has reported it. */
  async function submitted() {
    rig = await openRig({}, true)
    rig.status('idle')
    await rig.state('idle')
    await rig.submit(message('msg_1'))
  }

  /** Rewrites the status file every second, like the polling on a system without watches. */
  function tellEverySecond() {
    const file = join(rig.root, 'sessions', '4242.json')
    readings = setInterval(() => writeFileSync(file, readFileSync(file)), 1000)
  }

  it.each([
    ['is not in the transcript', false],
    ['is in the transcript', true],
  ])('ends although the same status is read repeatedly, when the prompt %s', async (_, isRecorded) => {
    await submitted()
    if (isRecorded) rig.prompt(message('msg_1'))
    rig.status('idle')
    tellEverySecond()
    await vi.waitFor(() => expect(rig.session.state).toBe('idle'), 9000)
  })

  it('also ends for an interrupt', async () => {
    await submitted()
    const interrupted = rig.session.interrupt()
    await vi.waitFor(() => expect(rig.keys).toEqual(['Escape']))
    rig.status('idle')
    tellEverySecond()
    expect(await interrupted).toMatchObject({ stopped: true })
  })

  it('does not wait for the transcript once our text is in the box, and recognises the late record (C25)', async () => {
    await submitted()
    rig.show(putBack('msg_1'))
    rig.status('idle')
    await rig.state('idle')
    expect(rig.savedState.withdrawn).toMatchObject([turn('msg_1')])
    rig.prompt(message('msg_1'), { uuid: 'late' })
    await vi.waitFor(() => expect(rig.savedState.withdrawn).toMatchObject([{ record: 'late' }]))
    // A person throws it away and says something else.
    rig.show(boxWith(''))
    await rig.submit('hello')
    rig.prompt('hello')
    rig.answer('hi')
    await vi.waitFor(() => expect(rig.said).toHaveLength(1))
    expect(rig.arrived).not.toContain('msg_1 read')
    expect(rig.savedState.withdrawn).toMatchObject([turn('msg_1')])
  })

  it('does not press Escape if the program reports its prompt', async () => {
    await submitted()
    // A person pressed Escape.
    rig.status('idle')
    await after(300)
    const interrupted = rig.session.interrupt()
    await after(700)
    expect(rig.keys).toEqual([])
    rig.show(putBack('msg_1'))
    expect(await interrupted).toMatchObject({ stopped: true })
    expect(rig.keys).toEqual([])
  })

  it('does not press Escape once it is closed', async () => {
    await submitted()
    const interrupted = rig.session.interrupt()
    await vi.waitFor(() => expect(rig.keys).toEqual(['Escape']))
    rig.status('idle')
    await after(2500)
    await rig.session.close('leave')
    await interrupted
    expect(rig.keys).toEqual(['Escape'])
  })

  it('does not forget a prompt submitted meanwhile', async () => {
    await submitted()
    rig.status('idle')
    await after(3500)
    const look = Promise.withResolvers<void>()
    rig.delayScreen(look.promise)
    await after(900)
    await rig.submit(message('msg_2'))
    look.resolve()
    await after(300)
    rig.show(putBack('msg_2'))
    rig.status('idle')
    await vi.waitFor(() => expect(rig.savedState.withdrawn).toMatchObject([turn('msg_2')]), 5000)
  })

  it('continues in the next service if the transcript has not shown the prompt yet (C25)', async () => {
    await submitted()
    await vi.waitFor(() => expect(rig.savedState.unrecorded).toBe(message('msg_1')))
    const before = rig
    await before.session.close('leave')
    rig = await openRig(before.savedState, true)
    rig.show(putBack('msg_1'))
    before.status('idle')
    await vi.waitFor(() => expect(rig.savedState.withdrawn).toMatchObject([turn('msg_1')]), 5000)
    expect(rig.savedState.unrecorded).toBeUndefined()
    await before.close()
  })

  it('is skipped if the program is started anew, as its box is empty', async () => {
    await submitted()
    rig.prompt(message('msg_1'))
    await vi.waitFor(() => expect(rig.arrived).toContain('msg_1 submitted'))
    const before = rig
    await before.session.close('leave')
    rig = await openRig({ ...before.savedState, statusFile: undefined, configFolder: before.root }, false)
    await rig.hook('SessionStart', { source: 'resume', transcript_path: before.transcript })
    rig.session.onToolsListed!()
    before.status('idle')
    await vi.waitFor(() => expect(rig.session.state).toBe('idle'), 3500)
    await before.close()
  })

  it('ends at once if the transcript withholds that a first turn was interrupted (2.1.197)', async () => {
    await submitted()
    rig.answer('some wo', { uuid: 'a1', parentUuid: 'listing' })
    rig.prompt('[Request interrupted by user]', { parentUuid: 'a1' })
    rig.status('idle')
    await vi.waitFor(() => expect(rig.session.state).toBe('idle'), 3000)
  })
})
