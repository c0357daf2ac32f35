import { describe, expect, it, vi } from 'vitest'
import { createSpeech } from '../../../src/programs/opencode/agent-output.ts'

function open() {
  const said: string[] = []
  const kept: string[] = []
  const settle: { resolve(): void; reject(error: Error): void }[] = []
  const speech = createSpeech(
    {
      onText({ text }) {
        said.push(text)
        return new Promise((resolve, reject) => settle.push({ resolve, reject }))
      },
    },
    async (messageId) => void kept.push(messageId),
  )
  for (const n of [1, 2, 3])
    speech.add({ id: `prt_${n}`, text: `text ${n}`, sessionID: 's', messageID: `msg_${n}`, type: 'text' })
  const after = async (act: () => void) => {
    act()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { said, kept, settle, after, speech }
}

describe('the speech of opencode', () => {
  it('says everything at once: a later command does not wait for the answer to an earlier one', () => {
    expect(open().said).toEqual(['text 1', 'text 2', 'text 3'])
  })

  it('keeps no place beyond what was acted upon (C25)', async () => {
    const { kept, settle, after } = open()
    await after(() => settle[1]!.resolve())
    expect(kept).toEqual([])
    await after(() => settle[0]!.resolve())
    expect(kept).toEqual(['msg_2'])
    await after(() => settle[2]!.resolve())
    expect(kept).toEqual(['msg_2', 'msg_3'])
  })

  it('says again what the store could not take, and keeps no place beyond it meanwhile (C25)', async () => {
    const { said, kept, settle, after, speech } = open()
    await after(() => settle[0]!.reject(new Error('disk full')))
    await after(() => settle[1]!.resolve())
    expect(kept).toEqual([])
    await vi.waitFor(() => expect(said).toEqual(['text 1', 'text 2', 'text 3', 'text 1']), 10_000)
    await after(() => settle[3]!.resolve())
    expect(kept).toEqual(['msg_2'])
    speech.close()
  })
})
