import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { isRunning, startIdle, turn } from './harness.ts'

const pidOf = (started: Awaited<ReturnType<typeof startIdle>>) =>
  started.fixture.record<{ pid: number }>('start').at(-1)!.pid

describe('the end of an ACP agent', () => {
  it('leaves no process and no child, marked or not (C15)', async () => {
    const started = await startIdle()
    await started.session.deliver(turn('CHILDREN', 'msg_1'))
    await started.reaches('idle')
    const pids = [pidOf(started), ...started.fixture.record<number[]>('children')[0]!]
    expect(pids.map(isRunning)).toEqual([true, true, true])
    await started.session.stop()
    expect(pids.map(isRunning)).toEqual([false, false, false])
    expect(started.states.at(-1)).toMatchObject({
      state: 'exited',
      evidence: expect.stringMatching(/^was stopped/),
    })
  })

  it('also reaches an agent that ignores SIGTERM', async () => {
    const started = await startIdle({ flags: ['--stubborn'], limits: { graceMs: 200 } })
    await started.session.stop()
    expect(isRunning(pidOf(started))).toBe(false)
  })

  it('also reaches an agent that was stopped (SIGSTOP)', async () => {
    const started = await startIdle({ limits: { graceMs: 2000 } })
    process.kill(pidOf(started), 'SIGSTOP')
    await started.session.stop()
    expect(isRunning(pidOf(started))).toBe(false)
  })

  it('comes with the service, and its state says that the conversation will be resumed', async () => {
    const started = await startIdle()
    await started.session.leave()
    expect(isRunning(pidOf(started))).toBe(false)
    expect(started.states.at(-1)?.evidence).toContain('will be resumed')
  })

  it('may be requested twice, and long afterwards', async () => {
    const { session, states } = await startIdle()
    await Promise.all([session.stop(), session.stop()])
    await session.stop()
    expect(states.filter(({ state }) => state === 'exited')).toHaveLength(1)
  })

  it('in the middle of a turn leaves the turn uncertain, and reports exit code and error output (C27)', async () => {
    const { session, reaches } = await startIdle()
    expect(await session.deliver(turn('DIE 7', 'msg_1'))).toEqual({
      state: 'uncertain',
      evidence: 'the agent ended without evidence of it',
    })
    expect(await reaches('exited')).toBe('exited with code 7: dying as told, with 7')
    expect((await session.locate(['msg_1']))[0]?.at).toBe('unknown')
    expect(await session.deliver(turn('SAY x', 'msg_2'))).toMatchObject({ state: 'queued' })
  })

  it('does not lose its last text', async () => {
    const { session, said, reaches } = await startIdle()
    await session.deliver(turn('SAY last words\nDIE 0', 'msg_1'))
    await reaches('exited')
    expect(said.join('')).toBe('last words')
  })

  it('by a signal is reported as such, and its children end too', async () => {
    const started = await startIdle()
    await started.session.deliver(turn('CHILDREN', 'msg_1'))
    await started.reaches('idle')
    process.kill(pidOf(started), 'SIGKILL')
    expect(await started.reaches('exited')).toMatch(/^was ended by SIGKILL/)
    const [marked, unmarked] = started.fixture.record<number[]>('children')[0]!
    expect(isRunning(marked!)).toBe(false)
    // The process has no connection to the agent any more: no mark, no group, no parent.
    process.kill(unmarked!)
  })

  it('after a killed service: the next one ends its processes before it resumes the conversation', async () => {
    const orphan = spawn('sleep', ['300'], {
      detached: true,
      stdio: 'ignore',
      env: { PATH: process.env.PATH, ORC_SESSION: 'mark-of-before' },
    })
    await sleep(50)
    await startIdle({ savedState: { program: process.execPath, mark: 'mark-of-before' } })
    expect(isRunning(orphan.pid!)).toBe(false)
  })
})
