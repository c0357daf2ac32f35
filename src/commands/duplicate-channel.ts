import { hash } from 'node:crypto'
import type { Command, CommandDefinition } from '../protocol/command.ts'
import type { Receipt } from '../protocol/receipt.ts'
import type { Channel, HandlerContext } from './commands.ts'

/** Assumed length of a turn whose beginning is unknown, as after a restart. */
const TURN_MS = 10 * 60_000

/**
 * A model that has a tool for a command, and was also taught to write it in its text, sometimes does both. A command that
 * an agent sends both ways in one turn runs once, and the second one gets the receipt of the first.
 */
export function duplicateChannel(
  { tx, speaker }: HandlerContext,
  turnBegan: (agent: string) => number | undefined,
  channel: Channel,
  definition: CommandDefinition,
  command: Command,
) {
  const agent = speaker.name
  const digest = digestOf(definition, command)
  return {
    /**
     * The receipt of the same command on the other channel. It is used up: a third command runs again. Also deletes the
     * receipts of the agent's earlier turns.
     */
    async takeReceipt(): Promise<Receipt | undefined> {
      const since = turnBegan(agent) ?? tx.now - TURN_MS
      const deleted = await tx.all<{ receipt: string; at: number }>(
        'DELETE FROM channel_receipts WHERE agent = ? AND (at < ? OR (digest = ? AND channel <> ?)) RETURNING receipt, at',
        [agent, since, digest, channel],
      )
      const row = deleted.find(({ at }) => at >= since)
      if (row === undefined) return undefined
      tx.audit({
        type: 'command.repeated',
        class: 'internal',
        actor: agent,
        text: `${definition.type} came from a tool and from the text, and ran once`,
        data: { command: definition.type },
      })
      return JSON.parse(row.receipt) as Receipt
    },
    storeReceipt(receipt: Receipt): void {
      tx.run(
        `INSERT INTO channel_receipts (agent, digest, channel, receipt, at) VALUES (?, ?, ?, ?, ?)
         ON CONFLICT (agent, digest, channel) DO UPDATE SET receipt = excluded.receipt, at = excluded.at`,
        [agent, digest, channel, JSON.stringify(receipt), tx.now],
      )
    },
  }
}

/** Digest of the command without the speaker's own name and surrounding space. */
function digestOf({ type, speaker, subject }: CommandDefinition, command: Command): string {
  const fields = Object.entries(command.fields)
    .filter(([field]) => field !== speaker && field !== subject?.field)
    .map(([field, value]) => [field, typeof value === 'string' ? value.trim().replace(/\r\n/g, '\n') : value])
  return hash('sha256', JSON.stringify([type, fields]))
}
