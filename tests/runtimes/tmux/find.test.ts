/** During a halt, a restarted service only looks for agents that still run. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createRecordingPort } from '../../fakes/recording-port.ts'
import { openTmuxFixture, type TmuxFixture } from '../tmux-fixture.ts'

let fixture: TmuxFixture
beforeEach(async () => {
  fixture = await openTmuxFixture()
})
afterEach(() => fixture.close())

describe('find', () => {
  async function start() {
    const port = createRecordingPort()
    const first = await fixture.runtime.start(fixture.agent(), port)
    await port.untilState('idle')
    return { first, savedState: port.savedState }
  }

  it('returns an agent that still runs in its pane', async () => {
    const { first, savedState } = await start()
    await first.leave()
    const panes = fixture.panes()
    const again = createRecordingPort()
    const runtime = await fixture.reopen()
    const found = await runtime.find!(fixture.agent({ savedState }), again)
    expect(found).toBeDefined()
    await again.untilState('idle')
    expect(fixture.panes()).toEqual(panes)
    await found!.stop()
  })

  it('returns undefined, and starts nothing, if the agent no longer runs', async () => {
    const { first, savedState } = await start()
    await first.stop()
    const panes = fixture.panes()
    const runtime = await fixture.reopen()
    expect(await runtime.find!(fixture.agent({ savedState }), createRecordingPort())).toBeUndefined()
    expect(
      await runtime.find!(fixture.agent({ savedState: undefined }), createRecordingPort()),
    ).toBeUndefined()
    expect(fixture.panes()).toEqual(panes)
  })
})
