import type { Tx } from '../../store/store.ts'

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
