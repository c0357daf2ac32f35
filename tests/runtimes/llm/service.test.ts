/** Agents that are models, in the whole service. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { defineConfig } from '../../../src/config/config.ts'
import { type Orchub, startOrchub } from '../../../src/main.ts'
import { type ModelServer, startModelServer } from '../../fakes/model-server/model-server.ts'
import type { ModelRequest, Play } from '../../fakes/model-server/play.ts'

const speaker = ({ system }: ModelRequest) => /^You are (\w+),/.exec(system)?.[1]

async function openTeam(play: Play) {
  const server = await startModelServer({ play })
  const folder = mkdtempSync(join(tmpdir(), 'orc-llm-team-'))
  const config = defineConfig(
    {
      agents: {
        Boss: {},
        Alice: { runtime: 'llm', with: { model: 'local' } },
        Bob: { runtime: 'llm', with: { model: 'local' } },
      },
      models: { local: { provider: 'openai-compatible', model: 'llama-3', base_url: `${server.url}/v1` } },
      prices: { llama: { input: 1_000_000, output: 1 } },
    },
    { file: join(folder, 'orc.yaml'), env: {} },
  )
  let orchub: Orchub = await startOrchub({ config, port: 0 })
  onTestFinished(async () => {
    await orchub.close()
    await server.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return {
    server,
    get engine() {
      return orchub.engine
    },
    tell: (to: string, content: string) =>
      orchub.engine.handle(
        { kind: 'agent', agent: 'Boss' },
        { type: 'send_message', fields: { to, content } },
      ),
    async restart() {
      await orchub.close('leave')
      orchub = await startOrchub({ config, port: 0 })
    },
    async mailOf(agent: string) {
      const receipt = await orchub.engine.handle(
        { kind: 'operator' },
        { type: 'query_mailbox', fields: { agent, filter: 'all' } },
      )
      const { messages } = (receipt as unknown as { details: { messages: Mail[] } }).details
      return messages.map(({ from, content, delivery }) => ({ from, content, delivery }))
    },
  }
}

interface Mail {
  from: string
  content: string
  delivery: string
}

describe('a team of models in the service', () => {
  it('sends commands by tools and in text, and its cost is known (C27)', async () => {
    const team = await openTeam((request) => {
      if (request.toolResults.length > 0) return { text: 'Done.' }
      if (speaker(request) === 'Bob' && request.userText.includes('Please add'))
        return { text: '<orc-command name="send_message" to="Alice">It is 42.</orc-command>' }
      if (request.userText.includes('Ask Bob'))
        return {
          toolCalls: [{ name: 'send_message', input: { to: 'bob', content: 'Please add 15 and 27.' } }],
          usage: { input: 5, output: 0 },
        }
      return { text: 'Noted.' }
    })
    await team.tell('Alice', 'Ask Bob what 15 and 27 make.')
    await vi.waitFor(async () => {
      expect(await team.mailOf('Bob')).toEqual([
        { from: 'Alice', content: 'Please add 15 and 27.', delivery: 'read' },
      ])
      expect(await team.mailOf('Alice')).toEqual([
        { from: 'Boss', content: 'Ask Bob what 15 and 27 make.', delivery: 'read' },
        { from: 'Bob', content: 'It is 42.', delivery: 'read' },
      ])
    }, 15_000)
    expect(team.engine.usageTracker.spent('Alice')).toBeGreaterThanOrEqual(5)
    expect(team.engine.usageTracker.context('Alice')).toMatchObject({ model: 'llama-3' })
    const [first] = team.server.calls()
    expect(first!.request!.tools.map(({ name }) => name)).toEqual(
      team.engine.registry.all().map(({ type }) => type),
    )
    expect(first!.request!.system).toContain('You have these commands as tools: prefer those.')
  })

  it('executes once a command sent both by a tool and in its text', async () => {
    const team = await openTeam(({ userText, toolResults }) => {
      if (toolResults.length > 0 || !userText.includes('Write')) return { text: 'Done.' }
      return {
        text: '<orc-command name="send_message" to="Bob">Hello.</orc-command>',
        toolCalls: [{ name: 'send_message', input: { to: 'Bob', content: 'Hello.' } }],
      }
    })
    await team.tell('Alice', 'Write to Bob.')
    await vi.waitFor(async () => {
      expect(await team.mailOf('Bob')).toMatchObject([{ content: 'Hello.', delivery: 'read' }])
      expect(await team.mailOf('Alice')).toMatchObject([{ delivery: 'read' }])
    }, 15_000)
    expect(await team.mailOf('Bob')).toHaveLength(1)
  })

  it('reads its messages by a tool, and they are not delivered again (C1)', async () => {
    const team = await openTeam(({ userText, toolResults }) => {
      if (toolResults.length > 0 || !userText.includes('Look')) return { text: 'Done.' }
      return { delayMs: 300, toolCalls: [{ name: 'mailbox_check', input: {} }] }
    })
    await team.tell('Alice', 'Look into your mailbox.')
    await team.server.waitFor(({ request }) => request !== undefined)
    await team.tell('Alice', 'The second.')
    await vi.waitFor(
      async () =>
        expect(await team.mailOf('Alice')).toMatchObject([{ delivery: 'read' }, { delivery: 'read' }]),
      15_000,
    )
    const given = team.server.calls().filter(({ request }) => request!.userText.includes('The second.'))
    expect(given).toEqual([])
  })

  it('continues after a restart of the service, and sends nothing twice (C25)', async () => {
    const team = await openTeam([
      { when: /Write to Bob/, times: 1, reply: { toolCalls: [hello()] } },
      { toolResult: /./, times: 1, reply: { text: 'Never heard.', delayMs: 60_000 } },
      { toolResult: /./, reply: { text: 'Done.' } },
    ])
    await team.tell('Alice', 'Write to Bob.')
    await waitForSecondCall(team.server)
    await team.restart()
    await vi.waitFor(async () => {
      expect(await team.mailOf('Alice')).toMatchObject([{ delivery: 'read' }])
      expect(team.server.calls().at(-1)!.reply).toMatchObject({
        text: expect.stringMatching(/Done|Understood/),
      })
    }, 15_000)
    expect(await team.mailOf('Bob')).toMatchObject([{ content: 'Hello.' }])
    expect(await team.mailOf('Bob')).toHaveLength(1)
  })

  function hello() {
    return { name: 'send_message', input: { to: 'Bob', content: 'Hello.' } }
  }

  async function waitForSecondCall(server: ModelServer) {
    await server.waitFor(({ request }) => (request?.toolResults.length ?? 0) > 0)
  }
})
