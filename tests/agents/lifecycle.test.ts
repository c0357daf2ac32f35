import { describe, expect, it } from 'vitest'
import { readSession } from '../../src/agents/store.ts'
import { AppError } from '../../src/base/errors.ts'
import { createPuppets } from '../fakes/puppet-runtime.ts'
import { createWorkerStage } from '../runs/worker-stage.ts'

const stage = createWorkerStage()
const { open, settle, worker, send } = stage

/** The last recorded state of the worker's session. */
const lastTold = () =>
  stage.engine.entries.findLast(({ type, actor }) => type === 'session.changed' && actor === 'Worker')!.text

describe('an agent', () => {
  it('that cannot be started reports why, and does not affect other agents', async () => {
    const puppets = createPuppets()
    puppets.failNext = new AppError('PROGRAM_MISSING', 'claude is not installed', { hint: 'npm install it' })
    await open({ agents: { Master: { program: 'any' }, Worker: { program: 'any' } } }, puppets)
    const rows = await stage.engine.store.all<{ name: string; session_state: string }>('SELECT * FROM agents')
    expect(rows.map((row) => row.session_state)).toContain('error')
    expect(stage.engine.entries.map((entry) => entry.text).join('\n')).toContain(
      'claude is not installed. npm install it',
    )
    expect(stage.puppets.started('Master') + stage.puppets.started('Worker')).toBe(1)
  })

  it('whose delivery cannot begin is left running, and the next start reattaches to it', async () => {
    await open()
    await stage.engine.sessions.stop('Worker')
    const { start } = stage.puppets
    stage.puppets.start = async (...order) => {
      const session = await start(...order)
      Object.defineProperty(session, 'state', {
        get() {
          throw new Error('the database is gone')
        },
      })
      return session
    }
    await stage.engine.sessions.start('Worker')
    expect(worker().ended).toBe('leave')
    stage.puppets.start = start
    await stage.engine.sessions.start('Worker')
    expect(worker().ended).toBeUndefined()
  })

  it.each([
    ['is recorded with its own reason', false, 'Worker is exited: it exited with 3'],
    ['is recorded as stopped if a person stopped it', true, 'Worker is exited'],
  ])('that ends while it is being started %s', async (_, isStopped, told) => {
    await open()
    await stage.engine.sessions.stop('Worker')
    const { start } = stage.puppets
    stage.puppets.start = async (...order) => {
      const session = await start(...order)
      if (isStopped) void stage.engine.sessions.stop('Worker')
      await settle()
      worker().become('exited', 'it exited with 3')
      await settle()
      return session
    }
    await stage.engine.sessions.start('Worker')
    await settle()
    expect(lastTold()).toContain(told)
  })

  it('that is being stopped when the service ends is stopped before its runtime is closed', async () => {
    await open()
    const { promise: stopped, resolve } = Promise.withResolvers<void>()
    worker().stopped = stopped
    let endedAtClose: string | undefined = 'never closed'
    stage.puppets.close = async () => {
      endedAtClose = worker().ended
    }
    const stopping = stage.engine.sessions.stop('Worker')
    const closing = stage.engine.sessions.close('end')
    await settle()
    resolve()
    await Promise.all([stopping, closing])
    expect(endedAtClose).toBe('stop')
  })

  it('that is still starting when the service leaves keeps its saved state', async () => {
    await open()
    await stage.engine.sessions.stop('Worker')
    const { promise: there, resolve } = Promise.withResolvers<void>()
    const { start } = stage.puppets
    stage.puppets.start = async (agent, port) => {
      await there
      await port.saveState({ pane: '%7' })
      return start(agent, port)
    }
    const starting = stage.engine.sessions.start('Worker')
    await settle()
    const closing = stage.engine.sessions.close('leave')
    await settle()
    resolve()
    await Promise.all([starting, closing])
    expect(worker().ended).toBe('leave')
    const row = await readSession(stage.engine.store, 'Worker')
    expect(JSON.parse(row!.kept!)).toMatchObject({ value: { pane: '%7' } })
  })

  it('gets a new token for each process, and the previous token is revoked', async () => {
    await open()
    const one = await worker().start.credentials()
    expect(stage.engine.tokens.authenticate(one.token)).toMatchObject({ kind: 'agent', agent: 'Worker' })
    const two = await worker().start.credentials()
    expect(stage.engine.tokens.authenticate(one.token)).toBeUndefined()
    expect(stage.engine.tokens.authenticate(two.token)).toMatchObject({ agent: 'Worker' })
    await stage.engine.order('request_action', { action: 'terminate_agent', target: 'Worker' })
    await settle()
    expect(stage.engine.tokens.authenticate(two.token)).toBeUndefined()
  })

  it('that is started while it is still being stopped is not found running, and keeps its new token', async () => {
    await open()
    const first = worker()
    const { promise, resolve } = Promise.withResolvers<void>()
    first.stopped = promise
    await stage.engine.order('request_action', { action: 'terminate_agent', target: 'Worker' })
    const spawn = { action: 'spawn_agent', target: 'Worker' }
    expect(await stage.engine.order('request_action', spawn)).toMatchObject({ status: 'ok' })
    await settle()
    expect(stage.puppets.started('Worker')).toBe(1)
    resolve()
    await settle()
    expect(stage.puppets.started('Worker')).toBe(2)
    const { token } = await worker().start.credentials()
    worker().become('idle')
    await send('One')
    await settle()
    expect(worker().turns).toHaveLength(1)
    expect(stage.engine.tokens.authenticate(token)).toMatchObject({ agent: 'Worker' })
  })

  it('that is reset begins a new conversation with a new nonce, and its role in the prompt', async () => {
    await open()
    await worker().port.saveState({ conversation: 'old' })
    const first = worker()
    await stage.engine.order('request_action', { action: 'reset_session', target: 'Worker' })
    await settle()
    expect(first.ended).toBe('stop')
    expect(worker().start.savedState).toBeUndefined()
    expect(worker().start.nonce).not.toBe(first.start.nonce)
    expect(worker().start.prompt).toContain('You are Worker')
  })

  it('receives hook calls made with its own token only', async () => {
    await open()
    const { signal } = new AbortController()
    expect(await stage.engine.sessions.hook('Worker', { event: 'Stop' }, signal)).toEqual({
      heard: { event: 'Stop' },
    })
    await expect(stage.engine.sessions.hook('Master', {}, signal)).rejects.toMatchObject({ code: 'CONFLICT' })
  })
})
