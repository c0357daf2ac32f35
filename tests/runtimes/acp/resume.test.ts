import { describe, expect, it } from 'vitest'
import { minuteIsOver } from '../../../src/runtimes/acp/connection.ts'
import { openFixture, start, startIdle, turn } from './harness.ts'

/** A conversation of one message, whose process is gone. */
async function earlier(flags: readonly string[] = []) {
  const fixture = openFixture()
  const first = await startIdle({ fixture, flags })
  await first.session.deliver(turn('SAY <orc-command type="x"/>', 'msg_1'))
  await first.reaches('idle')
  await first.session.leave()
  return { fixture, savedState: first.port.savedState as object, flags }
}

describe('an ACP conversation after a restart', () => {
  it('resumes by its id, and reports so (C25)', async () => {
    const before = await earlier()
    const again = await start(before)
    expect(await again.reaches('idle')).toBe('fake 1.0: resumed conversation conversation-1')
    expect(again.fixture.record('load')).toMatchObject([{ sessionId: 'conversation-1' }])
    expect(again.fixture.record('new')).toHaveLength(1)
    expect(again.port.savedState).toMatchObject({ conversation: { sessionId: 'conversation-1' } })
  })

  it('is not processed twice: replayed text is not new (C4)', async () => {
    const again = await startIdle(await earlier())
    await again.session.deliver(turn('SAY new', 'msg_2'))
    await again.reaches('idle')
    expect(again.said).toEqual(['new'])
  })

  it('is not processed twice even if the agent replays after it answered session/load', async () => {
    const again = await startIdle(await earlier(['--late-replay']))
    await again.session.deliver(turn('SAY new', 'msg_2'))
    await again.reaches('idle')
    expect(again.said).toEqual(['new'])
    expect((await again.session.locate(['msg_1']))[0]?.at).toBe('submitted')
  })

  it('shows by its replay which messages it received (C25)', async () => {
    const { session } = await startIdle(await earlier())
    const [given, ...others] = await session.locate(['msg_1', 'msg_2', 'msg_11'])
    expect(given).toEqual({ at: 'submitted', evidence: 'it is in the history the agent replayed' })
    expect(others.map(({ at }) => at)).toEqual(['absent', 'absent'])
  })

  it('shows nothing if the agent resumes without a replay', async () => {
    const { session, fixture } = await startIdle(await earlier(['--no-load', '--resume']))
    expect(fixture.record('resume')).toHaveLength(1)
    expect((await session.locate(['msg_1']))[0]?.at).toBe('unknown')
  })

  it('locates a message only once the session is open', async () => {
    const { session } = await start(await earlier())
    expect(session.state).toBe('initializing')
    expect((await session.locate(['msg_1']))[0]?.at).toBe('submitted')
  })

  it('gets its role again (ask 15)', async () => {
    const { session, fixture } = await startIdle(await earlier())
    await session.deliver(turn('SAY new', 'msg_2'))
    expect(fixture.record<string>('prompt').at(-1)).toMatch(/^\[ORCHUB MESSAGE role\]\n.*\n.*was resumed/)
  })

  it('starts anew, and reports so, when the agent does not know it or cannot resume', async () => {
    const { fixture, savedState } = await earlier()
    const wrong = await start({
      fixture,
      savedState: { ...savedState, conversation: { sessionId: 'gone', begunAt: 0 } },
    })
    expect(await wrong.reaches('idle')).toMatch(
      /^fake 1\.0: conversation gone could not be resumed \(.*\); started conversation-2$/,
    )
    expect((await wrong.session.locate(['msg_1']))[0]?.at).toBe('unknown')
    const unable = await start({ fixture, savedState, flags: ['--no-load'] })
    expect(await unable.reaches('idle')).toContain('could not be resumed (the agent does not support it)')
  })

  it('is not handed to another program', async () => {
    const { fixture, savedState } = await earlier()
    const { reaches } = await start({ fixture, savedState: { ...savedState, program: 'gemini' } })
    expect(await reaches('idle')).toContain('started ')
    expect(fixture.record('load')).toEqual([])
  })

  it('survives saved state of unknown origin', async () => {
    const { reaches } = await start({ savedState: { strange: true } })
    expect(await reaches('idle')).toContain('started conversation conversation-1')
  })

  it('is not resumed in its first minute by a program that would overwrite it', async () => {
    const begunAt = Date.UTC(2030, 0, 1, 12, 0, 20)
    const waits: number[] = []
    const at = (seconds: number) => ({
      now: () => begunAt + seconds * 1000,
      after: (ms: number, callback: () => void) => {
        waits.push(ms)
        callback()
        return () => {}
      },
    })
    await minuteIsOver(at(10), begunAt)
    await minuteIsOver(at(45), begunAt)
    await minuteIsOver(at(-3600), begunAt)
    expect(waits).toEqual([31_000])
  })
})
