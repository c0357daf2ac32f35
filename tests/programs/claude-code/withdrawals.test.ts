import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createWithdrawals } from '../../../src/programs/claude-code/interrupt.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const WITHDRAWN = { text: '[ORCHUB MESSAGE msg_1]\nhello\n[END ORCHUB MESSAGE msg_1]', ids: ['msg_1'] }

it('delivers a withdrawn turn again until it is shown, even if an attempt fails silently (C25)', async () => {
  const withdrawals = createWithdrawals([WITHDRAWN], () => {})
  let tries = 0
  withdrawals.schedule({
    isIdle: () => true,
    isHeld: () => false,
    async give() {
      tries += 1
      if (tries === 1) throw new Error('the terminal is gone for a moment')
    },
  })
  await vi.advanceTimersByTimeAsync(4000)
  expect(tries).toBe(2)
  withdrawals.prompted(WITHDRAWN.text)
  await vi.advanceTimersByTimeAsync(10_000)
  expect(tries).toBe(2)
})
