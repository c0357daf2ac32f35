import { type CommandEntry, commandEntry, receiptOf } from '../commands/commands.ts'
import { endHaltCommand, haltCommand } from './api.ts'
import { type Halt, wireHalt } from './halt.ts'

/** A halt takes effect in memory before it is stored, so that nothing acts while it waits for the disk. */
export const haltCommands = (halt: Pick<Halt, 'stop' | 'go'>): CommandEntry[] => [
  commandEntry(haltCommand, {
    // Looking up a key first would wait for a store that may hang. Halting twice is harmless.
    ignoresKey: true,
    async perform({ speaker }, { reason }) {
      const { halted, already, interrupts } = await halt.stop(speaker.person!, reason)
      return receiptOf(haltCommand, 'Everything is halted', {
        status: 'halted',
        already,
        halt: wireHalt(halted),
        interrupts: interrupts.map(({ agent, stopped, evidence }) => ({ agent, stopped, evidence })),
      })
    },
  }),
  commandEntry(endHaltCommand, {
    async perform({ speaker }) {
      const ended = await halt.go(speaker.person!)
      if (ended === undefined)
        return receiptOf(endHaltCommand, 'Nothing was halted', { status: 'going', told: [] })
      return receiptOf(endHaltCommand, 'The halt has ended', {
        status: 'going',
        halt: wireHalt(ended.halted),
        lasted_seconds: Math.round(ended.lastedMs / 1000),
        told: [...ended.told],
      })
    },
  }),
]
