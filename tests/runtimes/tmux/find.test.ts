/** While everything is halted, a service that is back only looks for what still runs. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createRecorder } from '../recorder.ts'
import { openTmuxPlace, type TmuxPlace } from '../tmux-place.ts'

let place: TmuxPlace
beforeEach(async () => {
  place = await openTmuxPlace()
})
afterEach(() => place.close())

describe('find', () => {
  it('returns an agent that still runs in its pane', async () => {
    const port = createRecorder()
    const first = await place.runtime.start(place.agent(), port)
    await port.untilState('idle')
    const kept = port.kept
    await first.leave()
    const panes = place.panes()
    const again = createRecorder()
    const runtime = await place.reopen()
    const found = await runtime.find!(place.agent({ savedState: kept }), again)
    expect(found).toBeDefined()
    await again.untilState('idle')
    expect(place.panes()).toEqual(panes)
    await found!.stop()
  })

  it('returns undefined, and starts nothing, if the agent no longer runs', async () => {
    const port = createRecorder()
    const first = await place.runtime.start(place.agent(), port)
    await port.untilState('idle')
    const kept = port.kept
    await first.stop()
    const panes = place.panes()
    const runtime = await place.reopen()
    expect(await runtime.find!(place.agent({ savedState: kept }), createRecorder())).toBeUndefined()
    expect(await runtime.find!(place.agent({ savedState: undefined }), createRecorder())).toBeUndefined()
    expect(place.panes()).toEqual(panes)
  })
})
