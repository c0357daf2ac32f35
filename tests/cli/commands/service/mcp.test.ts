import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { CACHE, createTeamFolder, ENTRY, TEAM, type TeamFolder } from '../../orc.ts'

let team: TeamFolder
const clients: Client[] = []
beforeEach(() => {
  team = createTeamFolder()
})
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close()
  await team.close()
})

/** `orc service mcp` as a program starts it: with only its environment. */
async function connect(
  env: Record<string, string>,
  mode: 'legacy' | { pin: string } = 'legacy',
  onChange: () => void = () => {},
): Promise<Client> {
  const client = new Client(
    { name: 'test', version: '1' },
    { versionNegotiation: { mode }, listChanged: { tools: { autoRefresh: false, onChanged: onChange } } },
  )
  clients.push(client)
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [ENTRY, 'mcp'],
    cwd: team.folder,
    env: { PATH: process.env.PATH ?? '', HOME: team.folder, NODE_COMPILE_CACHE: CACHE, ...env },
    stderr: 'ignore',
  })
  await client.connect(transport)
  return client
}

/** The bridge, driven line by line. */
function begin(env: Record<string, string>) {
  const running = team.begin('mcp', { env })
  return {
    say: (...messages: unknown[]) => {
      for (const one of messages) {
        running.child.stdin.write(`${typeof one === 'string' ? one : JSON.stringify(one)}\n`)
      }
    },
    async end() {
      running.child.stdin.end()
      const ran = await running.ended
      return { ...ran, answers: ran.json() as Record<string, unknown>[] }
    },
  }
}
const call = (id: number, name: string, args: Record<string, unknown> = {}) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args },
})

describe.each([
  ['2025-11-25', 'legacy'],
  ['2026-07-28', { pin: '2026-07-28' }],
] as const)('orc service mcp, to a client of the revision %s', (version, mode) => {
  it('offers the same tools, prompt and receipts as /mcp', async () => {
    const orchub = await team.start()
    const client = await connect({ ORC_URL: orchub.url, ORC_TOKEN: await team.token('Master') }, mode)
    expect(client.getNegotiatedProtocolVersion()).toBe(version)
    expect(client.getInstructions()).toContain(orchub.engine.prompt('Master'))
    const { tools } = await client.listTools()
    const types = orchub.engine.registry.all().map(({ type }) => type)
    expect(tools.map(({ name }) => name)).toEqual(types)
    const sent = await client.callTool({
      name: 'send_message',
      arguments: { to: 'Worker', content: 'ü\n\u2028 two lines' },
    })
    expect(sent.structuredContent).toMatchObject({ status: 'delivered', to: 'Worker' })
    const forged = await client.callTool({
      name: 'send_message',
      arguments: { from: 'Worker', to: 'Worker', content: 'x' },
    })
    expect(forged).toMatchObject({ isError: true, structuredContent: { code: 'SENDER_MISMATCH' } })
    await expect(client.callTool({ name: 'nothing' })).rejects.toThrow('Unknown tool: nothing')
  })
})

describe('orc service mcp', () => {
  it('acts as the operator of its folder unless a token is set', async () => {
    await team.start()
    const client = await connect({})
    const asked = await client.callTool({ name: 'query_mailbox', arguments: { agent: 'Worker' } })
    expect(asked.structuredContent).toMatchObject({ status: 'ok' })
  })

  it('reaches a service on a Unix socket', async () => {
    const folder = createTeamFolder(`${TEAM}service: { unix_socket: orc.sock }\n`)
    try {
      const orchub = await folder.start()
      expect(orchub.url).toMatch(/^unix:/)
      const client = await connect({ ORC_URL: orchub.url, ORC_TOKEN: await folder.token('Worker') })
      const asked = await client.callTool({ name: 'list_agents' })
      expect(asked.structuredContent).toMatchObject({ status: 'ok' })
    } finally {
      await folder.close()
    }
  })

  it('tells the model that the service is unreachable, and works again when it is back at another address', async () => {
    await team.start()
    const token = await team.token('Worker')
    const client = await connect({ ORC_TOKEN: token })
    await team.stop()
    const away = await client.callTool({ name: 'list_agents' })
    expect(away).toMatchObject({ isError: true, structuredContent: { code: 'SERVICE_UNREACHABLE' } })
    expect(JSON.stringify(away.content)).toContain('orc up')
    await client.ping()
    await team.start()
    const back = await client.callTool({ name: 'list_agents' })
    expect(back.structuredContent).toMatchObject({ status: 'ok' })
  })

  it('starts without a service, says so, and announces the tools once it is there', async () => {
    const changed = Promise.withResolvers<void>()
    // The first start creates the token, which stays after the service ends.
    await team.start()
    const token = await team.token('Worker')
    await team.stop()
    const client = await connect({ ORC_TOKEN: token }, 'legacy', () => changed.resolve())
    expect(client.getInstructions()).toContain('The service is not running')
    await expect(client.listTools()).rejects.toThrow(/not running.*orc up/s)
    await team.start()
    await changed.promise
    expect((await client.listTools()).tools.length).toBeGreaterThan(5)
  })

  it('neither loses nor repeats a call when the service restarts (C25)', async () => {
    await team.start()
    const client = await connect({ ORC_TOKEN: await team.token('Master') })
    await client.callTool({ name: 'send_message', arguments: { to: 'Worker', content: 'first' } })
    const stopping = team.stop()
    const sent = client.callTool({ name: 'send_message', arguments: { to: 'Worker', content: 'second' } })
    await stopping
    const again = await team.start()
    expect((await sent).structuredContent).toMatchObject({ status: 'delivered' })
    const box = await again.engine.handle(
      { kind: 'operator' },
      { type: 'query_mailbox', fields: { agent: 'Worker', filter: 'all' } },
    )
    const messages = [{ content: 'first' }, { content: 'second' }]
    expect(box).toMatchObject({ details: { messages } })
  })

  it('reports a wrong token with the error of the service', async () => {
    const orchub = await team.start()
    const wrong = { ORC_URL: orchub.url, ORC_TOKEN: 'orct_wrong' }
    await expect(connect(wrong)).rejects.toThrow('UNAUTHENTICATED')
    const bridge = begin(wrong)
    bridge.say(call(1, 'list_agents'))
    const { answers } = await bridge.end()
    expect(answers).toMatchObject([
      { id: 1, result: { isError: true, structuredContent: { code: 'UNAUTHENTICATED' } } },
    ])
  })

  it('answers invalid JSON, ignores notifications, and ends with its input', async () => {
    await team.start()
    const bridge = begin({ ORC_TOKEN: await team.token('Worker') })
    const initialized = { jsonrpc: '2.0', method: 'notifications/initialized' }
    bridge.say('{"jsonrpc', '', initialized, call(1, 'list_agents'), [
      call(2, 'list_agents'),
      call(3, 'list_agents'),
    ])
    const { code, err, answers } = await bridge.end()
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(answers).toHaveLength(3)
    expect(answers).toContainEqual(expect.objectContaining({ id: null, error: expect.anything() }))
    expect(answers).toContainEqual(expect.objectContaining({ id: 1, result: expect.anything() }))
    expect(answers).toContainEqual([expect.objectContaining({ id: 2 }), expect.objectContaining({ id: 3 })])
  })

  it('forwards event streams', async () => {
    await team.start()
    const bridge = begin({ ORC_TOKEN: await team.token('Worker') })
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    const params = { notifications: { toolsListChanged: true }, _meta: meta }
    bridge.say({ jsonrpc: '2.0', id: 5, method: 'subscriptions/listen', params })
    const { answers } = await bridge.end()
    expect(answers).toMatchObject([
      { method: 'notifications/subscriptions/acknowledged' },
      { id: 5, result: { resultType: 'complete' } },
    ])
  })
})
