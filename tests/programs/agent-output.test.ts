import { describe, expect, it, vi } from 'vitest'
import { createAgentOutput } from '../../src/programs/agent-output.ts'

function open() {
  const said: string[] = []
  const processed: string[] = []
  const warnings: string[] = []
  const settle: { resolve(): void; reject(error: Error): void }[] = []
  const output = createAgentOutput<string>({
    onText({ text }) {
      said.push(text)
      return new Promise((resolve, reject) => settle.push({ resolve, reject }))
    },
    onProcessed: async (item) => void processed.push(item),
    log: { warn: (_fields, text) => void warnings.push(text) },
  })
  const say = (n: number) => output.say({ text: `text ${n}`, channel: 'api', key: `key ${n}` }, `item ${n}`)
  for (const n of [1, 2, 3]) say(n)
  const after = async (act: () => void) => {
    act()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { said, processed, warnings, settle, after, output, say }
}

describe("an agent's output", () => {
  it('is passed on at once: a later command does not wait for the answer to an earlier one', () => {
    expect(open().said).toEqual(['text 1', 'text 2', 'text 3'])
  })

  it('saves no position beyond the text that was processed (C25)', async () => {
    const { output, processed, settle, after } = open()
    await after(() => settle[1]!.resolve())
    expect(processed).toEqual([])
    expect(output.oldestOpen).toBe('item 1')
    await after(() => settle[0]!.resolve())
    expect(processed).toEqual(['item 2'])
    expect(output.oldestOpen).toBe('item 3')
    await after(() => settle[2]!.resolve())
    expect(processed).toEqual(['item 2', 'item 3'])
    expect(output.oldestOpen).toBeUndefined()
  })

  it('repeats text that the store could not take, and saves no position beyond it meanwhile (C25)', async () => {
    const { said, processed, warnings, settle, after, output } = open()
    await after(() => settle[0]!.reject(new Error('disk full')))
    await after(() => settle[1]!.resolve())
    expect(processed).toEqual([])
    expect(warnings).toHaveLength(1)
    await vi.waitFor(() => expect(said).toEqual(['text 1', 'text 2', 'text 3', 'text 1']), 10_000)
    await after(() => settle[3]!.resolve())
    expect(processed).toEqual(['item 2'])
    output.close()
  })

  it('is not repeated once it is closed', async () => {
    const { said, processed, settle, after, output } = open()
    await after(() => settle[0]!.reject(new Error('disk full')))
    output.close()
    await after(() => settle[1]!.resolve())
    expect(said).toHaveLength(3)
    expect(processed).toEqual([])
  })

  it('passes the same key on once', () => {
    const { said, say } = open()
    say(2)
    expect(said).toHaveLength(3)
  })
})
