import type { DeliveryResult, Turn } from '../runtimes/runtime.ts'
import { holdsTurn } from './message-ids.ts'

export interface PromptAwaiter {
  /** Resolves when the program shows the turn as a prompt. Never rejects. */
  expect(turn: Turn): { readonly result: Promise<DeliveryResult>; cancel(): void }
  /** The program shows a prompt. */
  prompted(prompt: string, evidence: string): void
}

/** Turns given to a program, until it shows them. */
export function createPromptAwaiter(): PromptAwaiter {
  const waiting = new Map<Turn, (result: DeliveryResult) => void>()
  return {
    expect(turn) {
      const { promise, resolve } = Promise.withResolvers<DeliveryResult>()
      waiting.set(turn, resolve)
      return { result: promise, cancel: () => void waiting.delete(turn) }
    },
    prompted(prompt, evidence) {
      for (const [turn, resolve] of waiting) {
        if (!holdsTurn(prompt, turn)) continue
        waiting.delete(turn)
        resolve({ state: 'submitted', evidence })
      }
    },
  }
}
