import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { connect, createServer as createSocketServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { callAt, eventsIn, openStream, openTestService, type TestService } from '../harness/service.ts'

let service: TestService | undefined
let folder: string
beforeEach(() => {
  service = undefined
  folder = mkdtempSync(join(tmpdir(), 'orchub-listen-'))
})
afterEach(async () => {
  await service?.close()
  rmSync(folder, { recursive: true, force: true })
})

const isFree = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(false)
    })
    socket.on('error', () => resolve(true))
  })

describe('the address to listen on', () => {
  it('that is in use is an error that says what to do', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => other.once('listening', resolve))
    const { port } = other.address() as { port: number }
    try {
      await expect(
        openTestService({}, { service: { listen: { host: '127.0.0.1', port } } }),
      ).rejects.toMatchObject({
        code: 'CONFLICT',
        message: expect.stringContaining(`127.0.0.1:${port}`),
        hint: expect.stringContaining('--port'),
      })
    } finally {
      other.close()
    }
  })

  it('that belongs to another machine or to a missing folder is an error too', async () => {
    await expect(
      openTestService({}, { service: { listen: { host: '192.0.2.1', port: 0 } } }),
    ).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
    await expect(
      openTestService({}, { service: { listen: { unixSocket: join(folder, 'none', 'orc.sock') } } }),
    ).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
  })

  it('is reported as a URL with the real port', async () => {
    service = await openTestService()
    expect(service.http.url).toBe(`http://127.0.0.1:${service.port}`)
    expect(service.port).toBeGreaterThan(0)
  })

  it('does not make 0.0.0.0 a name of the service', async () => {
    service = await openTestService({}, { service: { listen: { host: '0.0.0.0', port: 0 } } })
    expect(service.http.url).toBe(`http://127.0.0.1:${service.port}`)
    expect((await service.get('/healthz')).status).toBe(200)
    const headers = { host: `0.0.0.0:${service.port}` }
    expect((await service.call('GET', '/healthz', { headers })).status).toBe(403)
  })
})

describe('a Unix socket', () => {
  const open = (unixSocket: string) => openTestService({}, { service: { listen: { unixSocket } } })
  const health = (socketPath: string, host = 'localhost') =>
    callAt({ socketPath }, 'GET', '/healthz', { headers: { host } })

  it('serves its owner only, under the names of this machine', async () => {
    const path = join(folder, 'orc.sock')
    service = await open(path)
    expect(service.http.url).toBe(`unix:${path}`)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect((await health(path)).json).toEqual({ status: 'ok' })
    expect((await health(path, 'evil.example')).status).toBe(403)
    const reply = await callAt({ socketPath: path }, 'POST', '/api/v1/commands', {
      token: service.tokens.master,
      body: { type: 'send_message', to: 'Worker', content: 'x' },
      headers: { host: 'localhost' },
    })
    expect(reply.json.status).toBe('delivered')
    expect(
      (await callAt({ socketPath: path }, 'GET', '/api/v1/agents', { headers: { host: 'localhost' } }))
        .status,
    ).toBe(401)
    await service.http.close()
    expect(existsSync(path)).toBe(false)
  })

  it('left by a dead service is replaced', async () => {
    const path = join(folder, 'orc.sock')
    const { spawnSync } = await import('node:child_process')
    const leave = `require('net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`
    spawnSync(process.execPath, ['-e', leave])
    expect(existsSync(path)).toBe(true)
    service = await open(path)
    expect((await health(path)).status).toBe(200)
  })

  it('of a live listener is left alone', async () => {
    const path = join(folder, 'orc.sock')
    const living = createSocketServer().listen(path)
    await new Promise((resolve) => living.once('listening', resolve))
    await expect(open(path)).rejects.toMatchObject({ code: 'CONFLICT' })
    expect(existsSync(path)).toBe(true)
    living.close()
  })

  it('never replaces a file', async () => {
    const path = join(folder, 'precious')
    writeFileSync(path, 'data')
    await expect(open(path)).rejects.toMatchObject({ code: 'CONFLICT' })
    expect(statSync(path).size).toBe(4)
  })
})

describe('closing', () => {
  it('ends streams and long polls at once, and frees the port', async () => {
    service = await openTestService()
    const events = await openStream(service.port, '/api/v1/events', service.tokens.operator)
    const mail = await openStream(service.port, '/api/v1/deliveries/next', service.tokens.worker)
    const poll = service.get('/api/v1/deliveries/next?wait=60', service.tokens.other)
    await service.say('Master', 'send_message', { to: 'Worker', content: 'x' })
    await mail.until((text) => eventsIn(text).length === 1)
    while (!(await service.get('/metrics')).text.includes('kind="poll"} 1')) await new Promise(setImmediate)
    const start = performance.now()
    await service.http.close()
    expect(performance.now() - start).toBeLessThan(1000)
    await Promise.all([events.ended, mail.ended])
    const reply = await poll
    expect([reply.status, reply.json.code]).toEqual([503, 'SERVICE_STOPPING'])
    expect(await isFree(service.port)).toBe(true)
  })

  it('lets a running request finish', async () => {
    service = await openTestService()
    const message = { type: 'send_message', to: 'Worker', content: 'x' }
    const replies = Promise.allSettled(
      Array.from({ length: 20 }, () => service!.command(service!.tokens.master, message)),
    )
    while (!service.types().includes('message.accepted')) await new Promise(setImmediate)
    await service.http.close()
    const settled = await replies
    const stored = (await service.mailOf('Worker')).length
    // Every caller with a success response finds its message; no response was cut off.
    expect(settled.filter((one) => one.status === 'fulfilled' && one.value.status === 200)).toHaveLength(
      stored,
    )
    expect(stored).toBeGreaterThan(0)
  })

  it('does not wait for idle connections', async () => {
    service = await openTestService()
    const idle = connect(service.port, '127.0.0.1')
    idle.on('error', () => {})
    await new Promise((resolve) => idle.once('connect', resolve))
    idle.write(`GET /healthz HTTP/1.1\r\nHost: ${service.host}\r\n\r\n`)
    await new Promise((resolve) => idle.once('data', resolve))
    const start = performance.now()
    await service.http.close()
    expect(performance.now() - start).toBeLessThan(1000)
  })

  it('does not wait for a connection that is kept alive after its last response', async () => {
    service = await openTestService()
    const kept = connect(service.port, '127.0.0.1')
    let text = ''
    kept.on('data', (data) => (text += data))
    const closed = new Promise((resolve) => kept.once('close', resolve))
    kept.write(
      `GET /api/v1/deliveries/next HTTP/1.1\r\nHost: ${service.host}\r\nAuthorization: Bearer ${service.tokens.worker}\r\n\r\n`,
    )
    while (!(await service.get('/metrics')).text.includes('kind="poll"} 1')) await new Promise(setImmediate)
    const start = performance.now()
    await service.http.close()
    expect(performance.now() - start).toBeLessThan(1000)
    await closed
    expect(text).toMatch(/^HTTP\/1.1 503/)
  })

  it('can be called twice', async () => {
    service = await openTestService()
    await Promise.all([service.http.close(), service.http.close()])
    await service.http.close()
  })
})
