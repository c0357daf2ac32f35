import { afterEach, describe, expect, it } from 'vitest'
import { openStream, openTestService, type TestService } from '../harness/service.ts'

let service: TestService
afterEach(() => service.close())

/** `name{label="value"}` → number. */
async function figures(): Promise<Map<string, number>> {
  const { text, headers, status } = await service.get('/metrics', service.tokens.worker)
  expect([status, headers['content-type']]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8'])
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
  )
}

describe('/metrics', () => {
  it('counts commands by type and outcome, with their latencies', async () => {
    service = await openTestService({ rules: { preset: 'mesh', forbid: [{ from: 'Worker', to: 'Other' }] } })
    const message = { type: 'send_message', to: 'Worker', content: 'x' }
    await service.command(service.tokens.master, [message, message, { type: 'LIST_AGENTS' }])
    await service.command(service.tokens.worker, { ...message, to: 'Other' })
    await service.command(service.tokens.worker, { ...message, to: 'Nobody' })
    const seen = await figures()
    const count = (type: string, outcome: string) =>
      seen.get(`orchub_commands_total{type="${type}",outcome="${outcome}"}`)
    expect(count('send_message', 'delivered')).toBe(2)
    expect(count('send_message', 'blocked')).toBe(1)
    expect(count('send_message', 'error')).toBe(1)
    expect(count('send_message', 'held')).toBe(0)
    expect(count('list_agents', 'ok')).toBe(1)
    expect(seen.get('orchub_command_errors_total{code="UNKNOWN_RECIPIENT"}')).toBe(1)
    expect(seen.get('orchub_command_duration_seconds_count{type="send_message"}')).toBe(4)
    expect(seen.get('orchub_command_duration_seconds_sum{type="send_message"}')).toBeGreaterThan(0)
    expect(seen.get('process_cpu_seconds_total')).toBeGreaterThan(0)
    expect(seen.get('nodejs_eventloop_utilization')).toBeGreaterThan(0)
    expect(seen.get('nodejs_eventloop_lag_seconds')).toBeGreaterThanOrEqual(0)
    expect([...seen].filter(([, figure]) => Number.isNaN(figure))).toEqual([])
  })

  it('does not grow with names that callers invent', async () => {
    service = await openTestService()
    const before = (await figures()).size
    await service.command(
      service.tokens.master,
      Array.from({ length: 300 }, (_, index) => ({ type: `made_up_${index}` })),
    )
    const after = await figures()
    expect(after.get('orchub_commands_total{type="unknown",outcome="error"}')).toBe(300)
    expect(after.size - before).toBeLessThan(40)
  })

  it('shows queues, deliveries, requests to people and open calls', async () => {
    service = await openTestService({ rules: { preset: 'mesh', ask: [{ from: 'Other', to: 'Master' }] } })
    await service.say('Master', 'send_message', { to: 'Worker', content: 'x' })
    await service.say('Master', 'send_message', { to: 'Worker', content: 'x' })
    await service.say('Other', 'send_message', { to: 'Master', content: 'x' })
    const stream = await openStream(service.port, '/api/v1/events', service.tokens.operator)
    const seen = await figures()
    expect(seen.get('orchub_deliveries_open{agent="Worker",state="queued"}')).toBe(2)
    expect(seen.get('orchub_human_requests_open')).toBe(1)
    expect(seen.get('orchub_open_calls{kind="events"}')).toBe(1)
    expect(seen.get('orchub_open_calls{kind="poll"}')).toBe(0)
    expect(seen.get('orchub_store_pending')).toBe(0)
    stream.drop()
    await service.say('Worker', 'mailbox_check')
    const later = await figures()
    expect(later.get('orchub_deliveries_open{agent="Worker",state="queued"}')).toBeUndefined()
    expect(later.get('orchub_deliveries_open{agent="Worker",state="written"}')).toBe(2)
  })

  it('belongs to its own service: two services do not share counts', async () => {
    service = await openTestService()
    const second = await openTestService()
    try {
      await second.command(second.tokens.master, { type: 'list_agents' })
      const seen = await figures()
      expect(seen.get('orchub_commands_total{type="list_agents",outcome="ok"}')).toBe(0)
    } finally {
      await second.close()
    }
  })
})
