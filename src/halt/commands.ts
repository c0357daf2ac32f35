import { type CommandEntry, commandEntry, receiptOf } from '../commands/commands.ts'
import { endHaltCommand, haltCommand } from './api.ts'
import { type Halt, wireHalt } from './halt.ts'

/** A halt acts before it is stored, so that nothing that waits for the disk happens in between. */
export const haltCommands = (halt: Pick<Halt, 'stop' | 'go'>): CommandEntry[] => [
  commandEntry(haltCommand, {
    // A key would have to be looked up first, in a store that may hang. To halt again is harmless.
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
