import { describe, expect, it } from 'vitest'
import { createSpeech } from '../../../src/programs/codex/agent-output.ts'

function open() {
  const said: string[] = []
  const kept: string[] = []
  const warnings: string[] = []
  const settle: { resolve(): void; reject(error: Error): void }[] = []
  const speech = createSpeech({
    said({ text }) {
      said.push(text)
      return new Promise((resolve, reject) => settle.push({ resolve, reject }))
    },
    keepUpTo: async (item) => void kept.push(item),
    warn: (_fields, text) => void warnings.push(text),
  })
  for (const n of [1, 2, 3]) speech.say(`text ${n}`, `key ${n}`, `item ${n}`)
  const after = async (act: () => void) => {
    act()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { said, kept, warnings, settle, after }
}

describe('speech', () => {
  it('says everything at once: a later command does not wait for the answer to an earlier one', () => {
    expect(open().said).toEqual(['text 1', 'text 2', 'text 3'])
  })

  it('keeps no place beyond what was acted upon (C25)', async () => {
    const { kept, settle, after } = open()
    await after(() => settle[1]!.resolve())
    expect(kept).toEqual([])
    await after(() => settle[0]!.resolve())
    expect(kept).toEqual(['item 2'])
    await after(() => settle[2]!.resolve())
    expect(kept).toEqual(['item 2', 'item 3'])
  })

  it('never keeps a place beyond what the engine refused, so that it is said again after a restart', async () => {
    const { kept, warnings, settle, after } = open()
    await after(() => settle[0]!.reject(new Error('disk full')))
    await after(() => settle[1]!.resolve())
    expect(kept).toEqual([])
    expect(warnings).toHaveLength(1)
  })
})
