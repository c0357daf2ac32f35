import { afterEach, describe, expect, it } from 'vitest'
import { createDaemon, type Daemon } from '../fakes/daemon.ts'
import { openTestService, type TestService } from '../harness/service.ts'

let service: TestService | undefined
let daemon: Daemon | undefined
afterEach(async () => {
  await service?.close()
  await daemon?.close()
  service = undefined
  daemon = undefined
})

const message = (content: string) => ({ type: 'send_message', to: 'Worker', content })

describe('POST /api/v1/halt', () => {
  it('needs the operator, records who, when and why, and appears in state, health and metrics', async () => {
    service = await openTestService()
    const forbidden = await service.call('POST', '/api/v1/halt', { token: service.tokens.master, body: {} })
    expect(forbidden.status).toBe(403)
    expect((await service.get('/api/v1/state')).json.halt).toBeUndefined()
    const { status, json } = await service.call('POST', '/api/v1/halt', { body: { reason: 'in circles' } })
    expect(status).toBe(200)
    expect(json).toMatchObject({
      status: 'halted',
      already: false,
      halt: { by: 'operator', reason: 'in circles' },
      interrupts: [],
    })
    expect((await service.get('/api/v1/state')).json.halt).toEqual(json.halt)
    expect((await service.call('GET', '/healthz', { token: undefined })).json).toEqual({
      status: 'ok',
      halted: true,
    })
    expect((await service.get('/metrics')).text).toContain('orchub_halted 1')
    const again = await service.call('POST', '/api/v1/halt', { body: {} })
    expect(again.json).toMatchObject({ already: true, halt: { reason: 'in circles' } })
  })

  it('refuses agents with 423, and keeps messages of the operator for later', async () => {
    service = await openTestService()
    await service.call('POST', '/api/v1/halt', { body: {} })
    const refused = await service.command(service.tokens.master, message('no'))
    expect(refused).toMatchObject({ status: 423, json: { status: 'error', code: 'HALTED' } })
    expect(refused.json.hint).toContain('A message tells you when work continues')
    expect((await service.command(service.tokens.operator, message('later'))).status).toBe(200)
    const waiting = await service.get('/api/v1/deliveries/next?wait=0', service.tokens.worker)
    expect(waiting.json).toEqual({ messages: [] })
    const gone = await service.call('POST', '/api/v1/go', { body: {} })
    expect(gone.json).toMatchObject({ status: 'going', told: ['Master'] })
    const { messages } = (await service.get('/api/v1/deliveries/next?wait=0', service.tokens.worker)).json
    expect(messages.map((one: { content: string }) => one.content)).toEqual(['later'])
    expect((await service.call('POST', '/api/v1/go', { body: {} })).json).toEqual({
      status: 'going',
      told: [],
    })
  })

  it('takes effect before ten thousand waiting commands', async () => {
    service = await openTestService()
    const { tokens } = service
    const batch = Array.from({ length: 1000 }, (_, index) => message(`message ${index}`))
    const order: string[] = []
    const floods = Array.from({ length: 10 }, () =>
      service!.command(tokens.master, batch).then((reply) => {
        order.push('flood')
        return reply.json as { status: string; code?: string }[]
      }),
    )
    // Request the halt only once the service has queued the commands.
    while (service.store.pending() < 5000) await new Promise((resolve) => setImmediate(resolve))
    const startedAt = performance.now()
    const halted = await service.call('POST', '/api/v1/halt', { body: { reason: 'flood' } })
    const tookMs = performance.now() - startedAt
    order.push('halt')
    const receipts = (await Promise.all(floods)).flat()
    expect(halted.json.status).toBe('halted')
    expect(order.indexOf('halt')).toBeLessThan(order.length - 1)
    const done = receipts.filter(({ status }) => status === 'delivered').length
    const refused = receipts.filter(({ code }) => code === 'HALTED').length
    expect(done + refused).toBe(10_000)
    expect(refused).toBeGreaterThan(5000)
    expect(tookMs).toBeLessThan(2000)
    const log = await service.get('/api/v1/audit?type=team.halted')
    const last = (await service.get('/api/v1/audit?type=message.accepted&limit=1')).json.entries.at(-1)
    // No message was accepted after the halt.
    expect(last?.seq ?? 0).toBeLessThan(log.json.entries[0].seq)
  })
})

const TEAM = `agents:
  Lead: { runtime: scripted, with: { script: [{ on: { text: work }, say: done, after_ms: 600000 }] } }
  Worker: {}
limits: { rate: off }
`

describe('a halt and kill -9', () => {
  it('stays in force after the restart, and ends once', async () => {
    daemon = await createDaemon(TEAM)
    await daemon.start()
    const worker = await daemon.token('Worker')
    const operator = daemon.operatorToken()
    const work = { type: 'send_message', to: 'Lead', content: 'work' }
    await daemon.call('POST', '/api/v1/commands', operator, work)
    const isBusy = async () => {
      const { agents } = (await daemon!.call('GET', '/api/v1/agents', operator)).body
      return (agents as { name: string; session: string }[]).some(({ session }) => session === 'busy')
    }
    while (!(await isBusy())) await new Promise((resolve) => setTimeout(resolve, 10))
    const { body } = await daemon.call('POST', '/api/v1/halt', operator, { reason: 'for the night' })
    expect(body.interrupts).toMatchObject([{ agent: 'Lead', stopped: true }])
    await daemon.kill()
    await daemon.start()
    const state = (await daemon.call('GET', '/api/v1/state', operator)).body
    expect(state.halt).toEqual(body.halt)
    const said = { type: 'send_message', to: 'Lead', content: 'x' }
    expect((await daemon.call('POST', '/api/v1/commands', worker, said)).status).toBe(423)
    expect((await daemon.call('POST', '/api/v1/go', operator, {})).body).toMatchObject({
      told: ['Lead', 'Worker'],
    })
    await daemon.kill()
    await daemon.start()
    expect((await daemon.call('GET', '/api/v1/state', operator)).body.halt).toBeUndefined()
    expect((await daemon.call('POST', '/api/v1/commands', worker, said)).status).toBe(200)
    expect(
      (await daemon.mailbox('Worker')).filter(({ content }) => content.includes('left off')),
    ).toHaveLength(1)
  })
})
