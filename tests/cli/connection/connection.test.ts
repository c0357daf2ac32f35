import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { exchange, findTeamLocation, readAnswer } from '../../../src/cli/connection/connection.ts'
import { stateFolder } from '../../../src/config/config.ts'
import { createTeamFolder, type TeamFolder } from '../orc.ts'

const open: TeamFolder[] = []
function teamFolder(yaml?: string): TeamFolder {
  const team = createTeamFolder(yaml)
  open.push(team)
  return team
}
afterEach(async () => {
  for (const team of open.splice(0)) await team.close()
})

describe('the team of a command', () => {
  it('has its state folder beside orc.yaml, without reading the file', () => {
    for (const env of [{}, { ORC_HOME: '/elsewhere/state' }, { ORC_HOME: 'relative' }, { ORC_HOME: '' }]) {
      expect(findTeamLocation('team/orc.yaml', env).stateFolder).toBe(stateFolder('team/orc.yaml', env))
    }
  })

  it('is named by --config before ORC_CONFIG', () => {
    const env = { ORC_CONFIG: 'b/orc.yaml' }
    expect(findTeamLocation('a/orc.yaml', env).configFile).toBe(resolve('a/orc.yaml'))
    expect(findTeamLocation(undefined, env).configFile).toBe(resolve('b/orc.yaml'))
  })

  it('is found from any folder below its orc.yaml', async () => {
    const team = teamFolder()
    await team.start()
    const below = join(team.folder, 'a', 'b')
    mkdirSync(below, { recursive: true })
    expect((await team.orc('list-agents', { cwd: below })).out).toContain('Worker')
    const byName = await team.orc(['--config', team.configFile, 'list-agents', '--json'], { cwd: tmpdir() })
    expect(byName.json()).toMatchObject([{ status: 'ok' }])
  })

  it('is found by its state folder alone', async () => {
    const team = teamFolder()
    await team.start()
    const ran = await team.orc('list-agents', { cwd: tmpdir(), env: { ORC_HOME: team.state } })
    expect(ran).toMatchObject({ code: 0, out: expect.stringContaining('Worker') })
  })
})

describe('a service that does not run', () => {
  it('is reported with exit code 5 and how to start it', async () => {
    const team = teamFolder()
    for (const args of ['send-message --to Worker hi', 'status', 'audit', 'inbox']) {
      const ran = await team.orc(args)
      expect(ran).toMatchObject({ code: 5, out: '' })
      expect(ran.err).toContain('SERVICE_UNREACHABLE')
      expect(ran.err).toContain('hint: Start it: orc up\n')
    }
    const ran = await team.orc(`status --config ${team.configFile}`, { cwd: tmpdir() })
    expect(ran.err).toContain(`hint: Start it: orc up --config ${team.configFile}\n`)
  })

  it.each([
    'send-message --to Worker hi',
    'status',
    'serve',
    'rules',
    'rules check',
    'rules explain A B',
    'token Worker',
    'prompt Worker',
    'audit verify',
  ])('without any team exits with 7: orc %s', async (args) => {
    const team = teamFolder()
    rmSync(team.configFile)
    await team.fails(args, 7, 'There is no orc.yaml here')
    const named = await team.orc(`${args} --config missing.yaml --json`)
    expect(named.code).toBe(7)
    expect(named.json()).toMatchObject([
      { code: 'NOT_FOUND', message: expect.stringContaining('missing.yaml') },
    ])
  })

  it('does not hide a typo in a command', async () => {
    const team = teamFolder()
    await team.fails('send-message --to Worker --priorty urgent hi', 2, 'Did you mean --priority?')
    await team.fails('send-message hi', 2, '--to is missing')
    expect(await team.shell('orc send-message --to Worker < /dev/null')).toMatchObject({
      code: 2,
      err: expect.stringContaining('CONTENT is missing'),
    })
  })

  it('sends no token to another program on its port after a crash', async () => {
    const team = teamFolder()
    await team.start()
    await team.stop()
    let connections = 0
    const thief = await listen((socket) => {
      connections += 1
      socket.end()
    })
    const dead = 2 ** 22 - 7
    writeFileSync(join(team.state, 'service.json'), JSON.stringify({ url: thief.url, pid: dead }))
    const ran = await team.orc('send-message --to Worker hi')
    thief.server.close()
    expect(ran).toMatchObject({ code: 5, err: expect.stringContaining(`process ${dead} has ended`) })
    expect(connections).toBe(0)
  })

  it('reports that something else answers at its address', async () => {
    const other = await listen((socket) => {
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello'))
    })
    const team = teamFolder()
    const env = { ORC_URL: other.url, ORC_TOKEN: 'x' }
    const ran = await team.orc('send-message --to Worker hi', { env })
    other.server.close()
    expect(ran).toMatchObject({ code: 5, err: expect.stringContaining('is not Orchub') })
  })

  it('does not delay help', async () => {
    const silent = await listen(() => {})
    const team = teamFolder()
    const ran = await team.orc('help', { env: { ORC_URL: silent.url, ORC_TOKEN: 'x' } })
    silent.server.close()
    expect(ran).toMatchObject({ code: 0, err: '', out: expect.stringContaining('send-message') })
  })

  it('reports an invalid ORC_URL', async () => {
    const team = teamFolder()
    await team.fails('list-agents', 2, 'Set ORC_URL to an address such as', {
      env: { ORC_URL: 'ftp://x', ORC_TOKEN: 'x' },
    })
  })
})

describe("the operator's token", () => {
  it('is refused when others can read its file', async () => {
    const team = teamFolder()
    await team.start()
    const file = join(team.state, 'operator.token')
    chmodSync(file, 0o640)
    for (const args of ['send-message --to Worker hi', 'status']) {
      await team.fails(args, 8, `chmod 600 ${file}`)
    }
    const env = { ORC_TOKEN: await team.token('Worker') }
    expect((await team.orc('list-agents', { env })).code).toBe(0)
  })

  it('is missing: says how to get one', async () => {
    const team = teamFolder()
    await team.start()
    rmSync(join(team.state, 'operator.token'))
    await team.fails('list-agents', 8, 'No token found')
  })
})

describe('a service on a Unix socket', () => {
  it('works with every command, including streams', async () => {
    const team = teamFolder('agents: { Master: {}, Worker: {} }\nservice: { unix_socket: s.sock }\n')
    const { url } = await team.start()
    expect(url).toMatch(/^unix:/)
    expect((await team.orc('send-message --from Master --to Worker hi')).code).toBe(0)
    expect((await team.orc('messages')).out).toContain('Master → Worker')
    expect((await team.orc('audit --type message')).out).toContain('MESSAGE.ACCEPTED')
    expect((await team.orc('status --json')).json()).toMatchObject([{ agents: [{}, {}] }])
    await team.fails('message msg_999', 7, 'NOT_FOUND')
  })
})

describe('one exchange over a socket', () => {
  const LENGTH =
    'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{"a":"\u00fcber"}'
  const CHUNKED =
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{"a"\r\n9\r\n:"\u00fcber"}\r\n0\r\n\r\n'
  const CLOSED = 'HTTP/1.0 200 OK\r\n\r\n{"a":"\u00fcber"}'

  it.each([
    ['with a length', LENGTH],
    ['in chunks', CHUNKED],
  ])('gives the body of an answer %s, and never a part of it', (_, answer) => {
    const bytes = Buffer.from(answer)
    expect(readAnswer(bytes)).toEqual({ status: 200, body: '{"a":"\u00fcber"}' })
    // The empty line after the last chunk carries no data.
    const needed = answer === CHUNKED ? bytes.length - 2 : bytes.length
    for (let cut = 0; cut < needed; cut++) expect(readAnswer(bytes.subarray(0, cut))).toBeUndefined()
  })

  it('returns the body of a response that ends with the connection', () => {
    expect(readAnswer(Buffer.from(CLOSED))).toEqual({ status: 200, body: '{"a":"\u00fcber"}' })
    expect(readAnswer(Buffer.from('HTTP/1.0 200'))).toBeUndefined()
  })

  it('assembles a response from any chunks', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(LENGTH, CHUNKED, CLOSED),
        fc.array(fc.nat(80), { maxLength: 4 }),
        async (answered, cuts) => {
          const bytes = Buffer.from(answered)
          const { server, url } = await listen((socket) => {
            socket.once('data', async () => {
              const places = [0, ...cuts.toSorted((a, b) => a - b), bytes.length]
              for (const [index, place] of places.entries()) {
                socket.write(bytes.subarray(place, places[index + 1]))
                await new Promise((resolve) => setImmediate(resolve))
              }
              socket.end()
            })
          })
          const answer = await exchange({ address: url, token: 't' }, { method: 'GET', path: '/' })
          server.close()
          expect(answer).toEqual({ a: '\u00fcber' })
        },
      ),
      { numRuns: 25 },
    )
  })

  it('says that the outcome is unknown when the response is cut off', async () => {
    const { server, url } = await listen((socket) => {
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{'))
    })
    const failed = exchange({ address: url, token: 't' }, { method: 'POST', path: '/', body: '{}' })
    await expect(failed).rejects.toMatchObject({
      code: 'SERVICE_UNREACHABLE',
      hint: expect.stringContaining('may or may not'),
    })
    server.close()
  })
})

async function listen(
  onConnection: (socket: import('node:net').Socket) => void,
): Promise<{ server: Server; url: string }> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    onConnection(socket)
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as { port: number }
  return { server, url: `http://127.0.0.1:${port}` }
}
