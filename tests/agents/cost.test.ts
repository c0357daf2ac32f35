import { describe, expect, it } from 'vitest'
import { createWorkerStage, TEAM } from '../runs/worker-stage.ts'

const stage = createWorkerStage()
const { open, settle, worker } = stage

describe('the context and the cost of an agent', () => {
  const spent = (key: string, input: number) => ({
    key,
    input,
    output: 0,
    cacheRead: 0,
    cacheWrite: 0,
  })

  it('comes from its program, and its parent and a person are warned once per step (C26)', async () => {
    await open()
    const fill = async (contextTokens: number) => {
      worker().port.onUsage({ model: 'm-1', contextTokens, contextWindow: 200_000, lines: 12, bytes: 3000 })
      await settle()
    }
    await fill(100_000)
    expect(await stage.engine.say('Worker', 'context_status')).toMatchObject({
      status: 'ok',
      details: { tokens: 100_000, window: 200_000, percent: 50, level: 'ok', lines: 12 },
    })
    for (const tokens of [151_000, 152_000, 181_000, 182_000]) await fill(tokens)
    expect((await stage.engine.mailOf('Master')).map((mail) => mail.title)).toEqual([
      "Worker's context is 75.5 % full (151000 of 200000 tokens)",
      "Worker's context is 90.5 % full (181000 of 200000 tokens)",
    ])
    expect(stage.engine.types().filter((type) => type.startsWith('context.'))).toEqual([
      'context.warning',
      'context.critical',
    ])
  })

  it('has a cap: the agent is paused and a person notified; resuming grants the same amount again (ask 14)', async () => {
    await open({
      ...TEAM,
      prices: { 'm-': { input: 10, output: 50 } },
      limits: { spend: { per_agent: 2 } },
    })
    const use = async (key: string) => {
      worker().port.onUsage({ model: 'm-1', spent: spent(key, 150_000) })
      await settle()
    }
    const isPaused = async () =>
      (await stage.engine.store.get<{ paused: number }>(`SELECT paused FROM agents WHERE name = 'Worker'`))!
        .paused
    await use('a')
    await use('a')
    expect(await isPaused()).toBe(0)
    await use('b')
    expect(await isPaused()).toBe(1)
    await stage.engine.order('request_action', { action: 'resume_session', target: 'Worker' })
    await settle()
    await use('c')
    expect(await isPaused()).toBe(0)
    await use('d')
    expect(await isPaused()).toBe(1)
    expect(stage.engine.types().filter((type) => type === 'spend.capped').length).toBe(2)
  })

  it('is reported once when it exceeds its cap while the agent is already paused (ask 14)', async () => {
    await open({
      ...TEAM,
      prices: { 'm-': { input: 10, output: 50 } },
      limits: { spend: { per_agent: 2, total: 5 } },
    })
    await stage.engine.order('request_action', { action: 'pause_session', target: 'Worker' })
    for (const key of ['a', 'b', 'c']) {
      worker().port.onUsage({ model: 'm-1', spent: spent(key, 150_000) })
      await settle()
    }
    const told = async () =>
      (await stage.engine.store.all<{ question: string }>('SELECT question FROM human_requests')).map(
        ({ question }) => question,
      )
    expect(await told()).toEqual([
      'Worker, which is paused, has reached its cap: Worker spent 3.00 of 2 (limits.spend.per_agent)',
    ])
    expect(stage.engine.types().filter((type) => type === 'spend.capped').length).toBe(1)
    worker().port.onUsage({ model: 'm-1', spent: spent('d', 150_000) })
    await settle()
    expect((await told()).slice(1)).toEqual([expect.stringContaining('(limits.spend.total)')])
  })
})
