import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Play } from '../../fakes/model-server/play.ts'
import { createRecordingPort } from '../../fakes/recording-port.ts'
import { turnOf } from '../conformance.ts'
import { openFixture } from './harness.ts'

const send = (to: string) => ({ name: 'send_message', input: { to, content: 'Hello.' } })

/** Writes to Bob and Carol at once, then to Dave, then has done. */
const WORK: Play = ({ toolResults }) => {
  if (toolResults.length === 2) return { text: 'Now Dave.', toolCalls: [send('Dave')] }
  if (toolResults.length === 1) return { text: 'All have it.' }
  return { text: 'Bob and Carol first.', toolCalls: [send('Bob'), send('Carol')] }
}

/** The agent did all its work and waits; the conversation is as it would be without the crash. */
async function worked() {
  const fixture = await openFixture(WORK)
  const session = await fixture.start()
  await fixture.port.untilState('idle')
  await session.deliver(turnOf('msg_7', 'Write to all.'))
  await fixture.port.untilState('idle')
  await session.leave()
  return fixture
}

describe('a resumed conversation', () => {
  it('continues after a crash at any byte, and repeats no command (C25)', async () => {
    const fixture = await worked()
    const whole = readFileSync(fixture.file())
    const ends = [...whole.keys()].filter((at) => whole[at] === 10).map((at) => at + 1)
    // At the end of each record, and in the middle of the next one.
    const cuts = ends.flatMap((end, index) => [end, Math.floor((end + (ends[index + 1] ?? end)) / 2)])
    expect(cuts.length).toBeGreaterThan(15)
    for (const cut of cuts) {
      writeFileSync(fixture.file(), whole.subarray(0, cut))
      const port = createRecordingPort()
      const session = await fixture.start({ savedState: fixture.port.savedState }, port)
      await port.untilState('idle')
      await session.leave()
      const found = fixture.lines()
      const kinds = found.map(({ type }) => type).filter((type) => type !== 'said')
      expect(kinds, `cut at ${cut}`).toEqual([
        'user',
        'assistant',
        'result',
        'result',
        'assistant',
        'result',
        'assistant',
        'end',
      ])
      expect(port.arrived.every(({ ids }) => ids.join() === 'msg_7')).toBe(true)
    }
    // The door saw calls again, each under the key it had before.
    expect(fixture.door.asked.length).toBeGreaterThan(3)
    expect(fixture.door.effects).toBe(3)
  })

  it('reports text again that may not have been processed, with the same key, and only that (C25)', async () => {
    const fixture = await openFixture(() => ({ text: 'Hear me.' }))
    const deaf = createRecordingPort({ onText: () => new Promise(() => {}) })
    const session = await fixture.start({}, deaf)
    await deaf.untilState('idle')
    await session.deliver(turnOf('msg_7', 'Speak.'))
    await deaf.untilState('idle')
    await session.leave()

    const port = createRecordingPort()
    const second = await fixture.start({ savedState: deaf.savedState }, port)
    await port.untilState('idle')
    const key = expect.stringMatching(/:2$/)
    expect(port.said).toEqual([{ text: 'Hear me.', channel: 'api', key }])
    await expect.poll(() => fixture.lines().at(-1)).toEqual({ type: 'said', of: 2 })
    await second.leave()

    const third = createRecordingPort()
    await fixture.start({ savedState: port.savedState }, third)
    await third.untilState('idle')
    expect(third.said).toEqual([])
  })

  it('is remembered by the model', async () => {
    const fixture = await worked()
    const port = createRecordingPort()
    const session = await fixture.start({ savedState: fixture.port.savedState }, port)
    await port.untilState('idle')
    await session.deliver(turnOf('msg_8', 'And now?'))
    await port.untilState('idle')
    const { body } = fixture.server.calls().at(-1)!
    expect(body).toContain('Write to all.')
    expect(body).toContain('Now Dave.')
    expect(await session.locate(['msg_7'])).toMatchObject([{ at: 'submitted' }])
    expect(await session.locate(['msg_9'])).toMatchObject([{ at: 'absent' }])
  })

  it('continues a turn that the end of the service interrupted', async () => {
    const fixture = await openFixture([
      { times: 1, reply: { text: 'Never heard.', delayMs: 60_000 } },
      { reply: { text: 'Heard.' } },
    ])
    const session = await fixture.start()
    await fixture.port.untilState('idle')
    await session.deliver(turnOf('msg_7', 'Speak.'))
    await fixture.server.waitFor(({ request }) => request !== undefined)
    await session.leave()
    expect(fixture.port.states.at(-1)!.state).toBe('exited')

    const port = createRecordingPort()
    await fixture.start({ savedState: fixture.port.savedState }, port)
    await port.untilState('idle')
    expect(port.text()).toBe('Heard.')
    expect(port.arrived).toMatchObject([{ ids: ['msg_7'], state: 'read' }])
    expect(fixture.lines().filter(({ type }) => type === 'user')).toHaveLength(1)
  })

  it('survives the kill of its process in the middle of an answer (C25)', async () => {
    const fixture = await openFixture([
      { times: 1, reply: { text: 'half '.repeat(200), chunkSize: 5, chunkMs: 50 } },
      { reply: { text: 'All of it.' } },
    ])
    const folder = mkdtempSync(join(tmpdir(), 'orc-llm-killed-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const script = fileURLToPath(new URL('./killed-agent.ts', import.meta.url))
    const child = spawn(process.execPath, [script, fixture.server.url, folder], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [line] = await once(child.stdout, 'data')
    await fixture.server.waitFor(({ request }) => request !== undefined)
    child.kill('SIGKILL')
    await once(child, 'close')

    const session = await fixture.start({ savedState: JSON.parse(String(line)), folder })
    await fixture.port.untilState('idle')
    expect(fixture.port.text()).toBe('All of it.')
    expect(await session.locate(['msg_7'])).toMatchObject([{ at: 'submitted' }])
    expect(
      fixture.server
        .calls()
        .at(-1)!
        .body.match(/Write to Bob/g),
    ).toHaveLength(1)
  })

  it('whose file is missing starts anew, and does not claim to know what it received', async () => {
    const fixture = await worked()
    rmSync(fixture.file())
    const port = createRecordingPort()
    const session = await fixture.start({ savedState: fixture.port.savedState }, port)
    await port.untilState('idle')
    expect(port.states.at(-1)!.evidence).toContain('started a new conversation')
    expect(await session.locate(['msg_7'])).toMatchObject([{ at: 'unknown' }])
  })

  it('skips a damaged line', async () => {
    const fixture = await worked()
    appendFileSync(fixture.file(), 'not a record\n{"type":"user"}\n')
    const port = createRecordingPort()
    const session = await fixture.start({ savedState: fixture.port.savedState }, port)
    await port.untilState('idle')
    await session.deliver(turnOf('msg_8', 'Still there?'))
    await port.untilState('idle')
    expect(fixture.server.calls().at(-1)!.body).toContain('Write to all.')
  })

  it('starts anew beside the earlier one when there is no saved state', async () => {
    const fixture = await worked()
    const port = createRecordingPort()
    await fixture.start({}, port)
    await port.untilState('idle')
    expect(port.savedState).not.toEqual(fixture.port.savedState)
  })

  it('is readable by its owner only', async () => {
    const fixture = await worked()
    expect(statSync(fixture.file()).mode & 0o777).toBe(0o600)
  })
})

describe('a conversation that cannot be written', () => {
  it('accepts no turn until it can be written again', async () => {
    const fixture = await openFixture(() => ({ text: 'ok' }))
    const session = await fixture.start()
    await fixture.port.untilState('idle')
    const turn = turnOf('msg_7', 'Go.')
    // A value that JSON cannot represent simulates a full disk: the write fails.
    const unwritable = { ...turn, ids: [1n as unknown as string] }
    expect(await session.deliver(unwritable)).toMatchObject({ state: 'queued' })
    expect(readFileSync(fixture.file(), 'utf8')).toBe('')
    expect(await session.deliver(turn)).toMatchObject({ state: 'submitted' })
    await fixture.port.until(() => fixture.port.text() === 'ok')
  })
})
