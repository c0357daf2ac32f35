import { describe, expect, it } from 'vitest'
import { decide } from '../harness/engine.ts'
import { createWorkerStage } from '../runs/worker-stage.ts'

const stage = createWorkerStage()
const { open, settle, worker } = stage

describe('a dialog of an agent program', () => {
  const question = { key: 'd1', tool: 'Bash', input: { command: 'rm -rf build' } }
  const openRequests = () =>
    stage.engine.store.all<{ id: number; state: string; question: string }>('SELECT * FROM human_requests')

  it('becomes a request that a person can answer from anywhere (C9)', async () => {
    await open()
    const verdict = worker().port.askPermission(question, new AbortController().signal)
    await settle()
    expect(await openRequests()).toMatchObject([
      { state: 'open', question: 'Worker wants to use Bash: rm -rf build' },
    ])
    await decide(stage.engine, { kind: 'operator' }, 'req_1', {
      decision: 'reject',
      comment: 'keep it',
    })
    expect(await verdict).toEqual({ allow: false, comment: 'keep it' })
  })

  it('closes its request when it is answered in the terminal', async () => {
    await open()
    const gone = new AbortController()
    const verdict = worker().port.askPermission(question, gone.signal)
    await settle()
    gone.abort()
    expect(await verdict).toBeUndefined()
    expect(await openRequests()).toMatchObject([{ state: 'withdrawn' }])
    await expect(
      decide(stage.engine, { kind: 'operator' }, 'req_1', { decision: 'approve' }),
    ).rejects.toMatchObject({ code: 'CONFLICT' })
  })

  it('keeps its request across a restart of the service if it is still open; otherwise the request is withdrawn', async () => {
    await open()
    const { signal } = new AbortController()
    void worker().port.askPermission(question, signal)
    void worker().port.askPermission({ ...question, key: 'd2' }, signal)
    await settle()
    await stage.reopen()
    await expect(
      decide(stage.engine, { kind: 'operator' }, 'req_1', { decision: 'approve' }),
    ).rejects.toMatchObject({ code: 'CONFLICT' })
    const verdict = worker().port.askPermission(question, signal)
    await stage.engine.clock.advance(20_000)
    expect((await openRequests()).map((request) => request.state)).toEqual(['open', 'withdrawn'])
    await decide(stage.engine, { kind: 'operator' }, 'req_1', { decision: 'approve' })
    expect(await verdict).toEqual({ allow: true })
  })

  it('becomes a notice with the way to the terminal if its program does not describe it', async () => {
    await open()
    worker().become('waiting_input')
    await stage.engine.clock.advance(2000)
    expect(await openRequests()).toMatchObject([
      { state: 'open', question: expect.stringContaining('orc attach Worker') },
    ])
    worker().become('busy')
    await stage.engine.clock.advance(2000)
    expect(await openRequests()).toMatchObject([{ state: 'withdrawn' }])
  })
})
