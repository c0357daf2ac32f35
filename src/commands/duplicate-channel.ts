import { hash } from 'node:crypto'
import type { Command, CommandDefinition } from '../protocol/command.ts'
import type { Receipt } from '../protocol/receipt.ts'
import type { Channel, HandlerContext } from './commands.ts'
import { leaveTwin, takeTwin } from './store/duplicate-channel.ts'

/** Where the turn's beginning is not known, as after a restart. */
const TURN_MS = 10 * 60_000

/**
 * Models that have a tool for a command and were also taught to write it in their text do both now and then. What
 * an agent says by both ways in one turn acts once: the second gets the receipt of the first.
 */
export interface Twins {
  /** The receipt of this command's twin, if it has one. */
  take(): Promise<Receipt | undefined>
  leave(receipt: Receipt): void
}

export function twinsOf(
  { tx, speaker }: HandlerContext,
  turnBegan: (agent: string) => number | undefined,
  channel: Channel,
  definition: CommandDefinition,
  command: Command,
): Twins {
  const agent = speaker.name
  const digest = digestOf(definition, command)
  return {
    async take() {
      const since = turnBegan(agent) ?? tx.now - TURN_MS
      const receipt = await takeTwin(tx, { agent, digest, channel, since })
      if (receipt === undefined) return undefined
      tx.audit({
        type: 'command.repeated',
        class: 'internal',
        actor: agent,
        text: `${definition.type} was said by a tool and in the text, and carried out once`,
        data: { command: definition.type },
      })
      return JSON.parse(receipt) as Receipt
    },
    leave: (receipt) => leaveTwin(tx, { agent, digest, channel, receipt: JSON.stringify(receipt) }),
  }
}

/** What the command does, however its speaker spelt it: its own name and surrounding space make no difference. */
function digestOf({ type, speaker, subject }: CommandDefinition, command: Command): string {
  const told = Object.entries(command.fields)
    .filter(([field]) => field !== speaker && field !== subject?.field)
    .map(([field, value]) => [field, typeof value === 'string' ? value.trim().replace(/\r\n/g, '\n') : value])
  return hash('sha256', JSON.stringify([type, told]))
}
