import { hash } from 'node:crypto'
import type { Command, CommandDefinition } from '../protocol/command.ts'
import type { Receipt } from '../protocol/receipt.ts'
import type { Tx } from '../store/store.ts'
import type { Channel, HandlerContext } from './commands.ts'

/** Assumed length of a turn whose beginning is unknown, as after a restart. */
const TURN_MS = 10 * 60_000

/**
 * A model that has a tool for a command, and was also taught to write it in its text, sometimes does both. A command that
 * an agent sends both ways in one turn acts once: the second one gets the receipt of the first.
 */
export interface DuplicateChannel {
  /** The receipt of the same command on the other channel, if it came there. */
  take(): Promise<Receipt | undefined>
  leave(receipt: Receipt): void
}

export function duplicateChannelOf(
  { tx, speaker }: HandlerContext,
  turnBegan: (agent: string) => number | undefined,
  channel: Channel,
  definition: CommandDefinition,
  command: Command,
): DuplicateChannel {
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

/** Digest of the command without the speaker's own name and surrounding space. */
function digestOf({ type, speaker, subject }: CommandDefinition, command: Command): string {
  const told = Object.entries(command.fields)
    .filter(([field]) => field !== speaker && field !== subject?.field)
    .map(([field, value]) => [field, typeof value === 'string' ? value.trim().replace(/\r\n/g, '\n') : value])
  return hash('sha256', JSON.stringify([type, told]))
}

/** Remembers a command that was just carried out, to notice the same one on another channel. */
export function leaveTwin(
  tx: Tx,
  twin: { agent: string; digest: string; channel: string; receipt: string },
): void {
  tx.run(
    `INSERT INTO twins (agent, digest, channel, receipt, at) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (agent, digest, channel) DO UPDATE SET receipt = excluded.receipt, at = excluded.at`,
    [twin.agent, twin.digest, twin.channel, twin.receipt, tx.now],
  )
}

/** The receipt of the same command on another channel since then. It is used up: a third one acts again. */
export async function takeTwin(
  tx: Tx,
  said: { agent: string; digest: string; channel: string; since: number },
): Promise<string | undefined> {
  const rows = await tx.all<{ receipt: string }>(
    `DELETE FROM twins WHERE agent = ? AND digest = ? AND channel <> ? AND at >= ? RETURNING receipt`,
    [said.agent, said.digest, said.channel, said.since],
  )
  return rows[0]?.receipt
}
