import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { ChatMessage, Provider, Spending } from '../../src/llm/llm.ts'
import { modelsAt, openServer, PROVIDERS } from './harness.ts'

const Verdict = z.object({ completed: z.boolean(), reason: z.string().min(1).max(100) })

const TOOL = {
  name: 'send_message',
  description: 'Sends a message.',
  schema: {
    type: 'object',
    properties: { to: { type: 'string' } },
    required: ['to'],
    additionalProperties: true,
  },
}

describe.each(Object.keys(PROVIDERS) as Provider[])('a model of %s', (provider) => {
  it('answers by a schema and reports its cost (S2.11)', async () => {
    const server = await openServer(() => ({
      text: '{"completed": true, "reason": "all there"}',
      usage: { input: 120, cached: 100, output: 9 },
    }))
    const spent: Spending[] = []
    const answer = await modelsAt(server.url, { provider }).generateObject({
      model: 'fast',
      schema: Verdict,
      system: 'You are a judge.',
      prompt: 'Is it done?',
      purpose: 'judge',
      spent: (spending) => spent.push(spending),
    })
    const { model } = PROVIDERS[provider]
    const spending = { model, input: 20, output: 9, cacheRead: 100, cacheWrite: 0 }
    expect(answer).toEqual({ ok: true, value: { completed: true, reason: 'all there' } })
    expect(spent).toEqual([spending])
    const [call] = server.requests
    expect(call!.agent).toBe('judge')
    expect(call!.request).toMatchObject({ model, userText: 'Is it done?' })
    expect(call!.request!.system).toContain('You are a judge.')
    expect(call!.request!.schema).toMatchObject({ properties: { completed: { type: 'boolean' } } })
  })

  it('streams its text as it comes, then the tools it calls', async () => {
    const server = await openServer(() => ({
      text: 'I will write to Bob now.',
      chunkSize: 5,
      toolCalls: [{ name: 'send_message', input: { to: 'Bob' } }],
    }))
    const pieces: string[] = []
    let begun = 0
    const answer = await modelsAt(server.url, { provider }).stream({
      model: 'fast',
      system: 'You are Alice.',
      messages: [{ role: 'user', text: 'Write to Bob.' }],
      tools: [TOOL],
      onText: (piece) => pieces.push(piece),
      onBegin: () => {
        begun += 1
      },
    })
    expect(answer).toMatchObject({
      ok: true,
      text: 'I will write to Bob now.',
      calls: [{ name: 'send_message', input: { to: 'Bob' } }],
      finish: 'stop',
    })
    expect(pieces.length).toBeGreaterThan(2)
    expect(pieces.join('')).toBe('I will write to Bob now.')
    expect(begun).toBe(1)
  })

  it('gets its own text and the results of its tools back', async () => {
    const server = await openServer([
      { toolResult: /delivered/, reply: { text: 'Bob has it.' } },
      {
        reply: {
          thinking: 'Hm.',
          text: 'Writing.',
          toolCalls: [{ name: 'send_message', input: { to: 'Bob' } }],
        },
      },
    ])
    const models = modelsAt(server.url, { provider })
    const question: ChatMessage = { role: 'user', text: 'Write to Bob.' }
    const call = { model: 'fast', system: 'You are Alice.', tools: [TOOL] }
    const first = await models.stream({ ...call, messages: [question] })
    if (!first.ok) throw new Error(first.message)
    // As it comes back from a file.
    const kept: typeof first = JSON.parse(JSON.stringify(first))
    const { id, name } = kept.calls[0]!
    const messages: ChatMessage[] = [
      question,
      { role: 'assistant', text: kept.text, calls: kept.calls, parts: kept.parts },
      { role: 'tool', results: [{ id, name, text: 'delivered', isError: false }] },
    ]
    const second = await models.stream({ ...call, messages })
    expect(second).toMatchObject({ ok: true, text: 'Bob has it.', calls: [] })
  })
})
