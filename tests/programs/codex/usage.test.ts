import { expect, it } from 'vitest'
import { NOTICES } from '../../../src/programs/codex/records.ts'
import { usageOf } from '../../../src/programs/codex/thread-follower.ts'
import { THREAD, tokenUsage } from './recorded.ts'

it('reports the context of the last answer, and counts each answer once (C26)', () => {
  const notice = NOTICES['thread/tokenUsage/updated'].parse(tokenUsage)
  expect(usageOf(notice, 'gpt-6')).toEqual({
    model: 'gpt-6',
    contextTokens: 600,
    contextWindow: 258400,
    spent: { key: `codex:${THREAD}:990`, input: 200, output: 40, cacheRead: 400, cacheWrite: 0 },
  })
})
