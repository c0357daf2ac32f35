import { describe, expect, it } from 'vitest'
import { createArrivals } from '../../../src/programs/codex/turns.ts'
import { agentMessage, commandExecution, TURN, turn, userMessage } from './recorded.ts'

const envelopes = (...ids: string[]) =>
  ids.map((id) => `[ORCHUB MESSAGE ${id}]\nhello\n[END ORCHUB MESSAGE ${id}]`).join('\n\n')

function open() {
  const seen: [readonly string[], string][] = []
  const arrivals = createArrivals((ids, state) => void seen.push([ids, state]))
  return { arrivals, seen }
}

describe('arrivals', () => {
  it('finds all messages of a turn by their ids, first submitted, then read (C27)', () => {
    const { arrivals, seen } = open()
    arrivals.saw(TURN, userMessage(envelopes('msg_1', 'msg_2')))
    expect(seen).toEqual([[['msg_1', 'msg_2'], 'submitted']])
    arrivals.saw(TURN, agentMessage('I see.'))
    arrivals.saw(TURN, agentMessage('More.', 'msg_other'))
    expect(seen.slice(1)).toEqual([[['msg_1', 'msg_2'], 'read']])
  })

  it('confirms a message to its sender by the client id', async () => {
    const { arrivals } = open()
    const { taken } = arrivals.expect('orchub-1')
    arrivals.saw(TURN, userMessage(envelopes('msg_1'), 'another'))
    arrivals.saw(TURN, userMessage('an answer without an id', 'orchub-1'))
    expect(await taken).toMatchObject({ state: 'submitted', evidence: expect.stringContaining(TURN) })
  })

  it('counts only answers of the model', () => {
    const { arrivals, seen } = open()
    arrivals.saw(TURN, userMessage(envelopes('msg_1')))
    arrivals.saw(TURN, { type: 'contextCompaction', id: 'c1' })
    arrivals.saw(TURN, { type: 'hookPrompt', id: 'h1', fragments: [] })
    arrivals.saw(TURN, { ...commandExecution, source: 'userShell' })
    arrivals.saw('another turn', agentMessage('I see.'))
    expect(seen).toHaveLength(1)
    arrivals.saw(TURN, commandExecution)
    expect(seen.at(-1)).toEqual([['msg_1'], 'read'])
  })

  it('counts a completed turn as read, but not a failed or stopped one', () => {
    for (const [status, expected] of [
      ['completed', 2],
      ['failed', 1],
      ['interrupted', 1],
    ] as const) {
      const { arrivals, seen } = open()
      arrivals.saw(TURN, userMessage(envelopes('msg_1')))
      arrivals.ended(turn(status))
      expect(seen).toHaveLength(expected)
    }
  })

  it('follows a message that joins a running turn on its own', () => {
    const { arrivals, seen } = open()
    arrivals.saw(TURN, userMessage(envelopes('msg_1')))
    arrivals.saw(TURN, agentMessage('I work.'))
    arrivals.saw(TURN, userMessage(envelopes('msg_2')))
    expect(seen.at(-1)).toEqual([['msg_2'], 'submitted'])
    arrivals.saw(TURN, agentMessage('I see.', 'msg_b'))
    expect(seen.at(-1)).toEqual([['msg_2'], 'read'])
  })
})
