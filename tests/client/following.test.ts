import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startService } from '../../src/api/service.ts'
import { createClient } from '../../src/client/client.ts'
import { verifyStoredAudit } from '../../src/main.ts'
import { openTestService, type TestService } from '../harness/service.ts'

let service: TestService
let stop: AbortController
beforeEach(async () => {
  service = await openTestService()
  stop = new AbortController()
})
afterEach(async () => {
  stop.abort()
  await service.close()
})

const send = (content: string) => service.say('Master', 'send_message', { to: 'Worker', content })
const clientOf = (token: string) => createClient({ url: service.url, token })

/** The same service again, at the same port. */
const restart = () =>
  startService({
    engine: service.engine,
    listen: { host: '127.0.0.1', port: service.port },
    allowedHosts: [],
    version: '1.2.3',
    startedAt: 0,
    configStatus: () => ({ loadedAt: 0 }),
    storePlace: 'a test',
    verifyAudit: () => verifyStoredAudit(service.engine.store),
  })

async function until(fits: () => boolean | Promise<boolean>) {
  while (!(await fits())) await new Promise((resolve) => setTimeout(resolve, 5))
}

describe('events', () => {
  const follow = (after?: number) => {
    const texts: string[] = []
    const following = (async () => {
      const { signal } = stop
      const events = clientOf(service.tokens.operator).events({
        signal,
        ...(after === undefined ? {} : { after }),
      })
      for await (const event of events) if (event.type === 'message.accepted') texts.push(event.text)
    })()
    return { texts, following }
  }
  const isOpen = async () =>
    (await service.get('/metrics')).text.includes('orchub_open_calls{kind="events"} 1')

  it('continue without a gap after the service was away', async () => {
    await send('old')
    const { texts, following } = follow()
    await until(isOpen)
    await service.http.close()
    // The reader has received nothing yet, and must still get messages written while the service is away.
    await send('while it was away')
    const second = await restart()
    await until(() => texts.length === 1)
    await send('live')
    await until(() => texts.length === 2)
    await second.close()
    await send('away again')
    const third = await restart()
    await until(() => texts.length === 3)
    expect(texts).toEqual(['while it was away', 'live', 'away again'])
    stop.abort()
    await following
    await third.close()
  })

  it('start after a given entry', async () => {
    await send('one')
    await send('two')
    const { texts, following } = follow(service.entries.at(-2)!.seq)
    await until(() => texts.length === 1)
    expect(texts).toEqual(['two'])
    stop.abort()
    await following
  })

  it('end with an error that a retry cannot fix', async () => {
    const events = clientOf(service.tokens.worker).events({ signal: stop.signal })
    const next = events.next()
    await until(isOpen)
    await service.call('DELETE', '/api/v1/tokens/Worker')
    await expect(next).rejects.toMatchObject({ code: 'UNAUTHENTICATED' })
  })

  it('close the connection when the reader stops', async () => {
    for await (const event of clientOf(service.tokens.operator).events({ after: 0 })) {
      expect(event.seq).toBe(1)
      break
    }
    await until(async () =>
      (await service.get('/metrics')).text.includes('orchub_open_calls{kind="events"} 0'),
    )
  })
})

describe('taskEvents (S2.9)', () => {
  it('run from the beginning to the end of a task, without a gap after the service was away', async () => {
    const client = clientOf(service.tokens.operator)
    const { task_id } = await client.ask(
      { question: 'What is it?', agent: 'Master' },
      { idempotencyKey: 'k' },
    )
    expect(
      await client.ask({ question: 'What is it?', agent: 'Master' }, { idempotencyKey: 'k' }),
    ).toMatchObject({
      task_id,
    })
    const seen: string[] = []
    const following = (async () => {
      for await (const event of client.taskEvents(task_id, { signal: stop.signal })) seen.push(event.type)
    })()
    await until(() => seen.includes('selected'))
    await service.http.close()
    await service.order('task_action', { task_id, action: 'cancel' })
    const second = await restart()
    await following
    expect(seen.filter((type) => type === 'selected')).toHaveLength(1)
    expect(seen.at(-1)).toBe('end')
    const trace = await client.trace(task_id)
    expect(trace.steps.map(({ type }) => type)).toEqual(seen.slice(0, -1))
    await second.close()
  })

  it('end with their connection if reconnecting is off', async () => {
    const client = clientOf(service.tokens.operator)
    const { task_id } = await client.ask({ question: 'What is it?', agent: 'Master' })
    const seen: string[] = []
    const following = (async () => {
      for await (const event of client.taskEvents(task_id, { reconnect: false })) seen.push(event.type)
    })()
    await until(() => seen.includes('selected'))
    await service.http.close()
    await following
    expect(seen).not.toContain('end')
  })
})

describe('receive', () => {
  const stateOf = async (id: string) => (await service.get(`/api/v1/messages/${id}`)).json.delivery

  it('handles messages in order and acknowledges each when its handler is done', async () => {
    await send('one')
    await send('two')
    const seen: string[] = []
    const gate = Promise.withResolvers<void>()
    const receiving = clientOf(service.tokens.worker).receive({ signal: stop.signal }, async (mail) => {
      seen.push(mail.content)
      if (mail.content === 'two') await gate.promise
    })
    await until(async () => (await stateOf('msg_1')) === 'read')
    expect(await stateOf('msg_2')).toBe('written')
    gate.resolve()
    await until(async () => (await stateOf('msg_2')) === 'read')
    await send('three')
    await until(async () => (await stateOf('msg_3')) === 'read')
    expect(seen).toEqual(['one', 'two', 'three'])
    stop.abort()
    await receiving
  })

  it('handles a message again when its handler failed, and not when only the acknowledgement was late', async () => {
    const seen: string[] = []
    const failed: unknown[] = []
    const receiving = clientOf(service.tokens.worker).receive(
      { signal: stop.signal, onError: (error) => void failed.push(error) },
      (mail) => {
        seen.push(mail.content)
        if (seen.length === 1) throw new Error('not now')
      },
    )
    await send('fragile')
    await until(() => failed.length === 1)
    await until(async () => (await service.get('/metrics')).text.includes('orchub_open_calls{kind="poll"} 1'))
    await service.clock.advance(30_000)
    await until(async () => (await stateOf('msg_1')) === 'read')
    expect(seen).toEqual(['fragile', 'fragile'])
    stop.abort()
    await receiving
  })

  it('ends with the error of a handler unless onError takes it', async () => {
    await send('fatal')
    const receiving = clientOf(service.tokens.worker).receive({}, () => {
      throw new Error('broken')
    })
    await expect(receiving).rejects.toThrow('broken')
    expect(await stateOf('msg_1')).toBe('written')
  })

  it('continues after the service was away', async () => {
    const seen: string[] = []
    const receiving = clientOf(service.tokens.worker).receive(
      { signal: stop.signal },
      (mail) => void seen.push(mail.content),
    )
    await send('before')
    await until(() => seen.length === 1)
    await service.http.close()
    await send('while it was away')
    const second = await restart()
    await until(() => seen.length === 2)
    await until(async () => (await service.mailOf('Worker')).every((mail) => mail.delivery === 'read'))
    expect(seen).toEqual(['before', 'while it was away'])
    stop.abort()
    await receiving
    await second.close()
  })

  it('throws at once for a wrong address or a missing permission', async () => {
    await expect(clientOf('nonsense').receive({}, () => {})).rejects.toMatchObject({
      code: 'UNAUTHENTICATED',
    })
    await expect(clientOf(service.tokens.worker).receive({ agent: 'Other' }, () => {})).rejects.toMatchObject(
      {
        code: 'FORBIDDEN',
      },
    )
  })
})
