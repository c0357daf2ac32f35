import type { Reader, Tx } from '../../store/store.ts'

/**
 * Maps ids that senders chose for their messages (`message_id`) to ours. Models invent ids and repeat them, so the
 * newest wins.
 */
export function rememberId(tx: Tx, speaker: string, name: string, ref: string): void {
  tx.run(
    `INSERT INTO said_ids (name, speaker, ref, at) VALUES (?, ?, ?, ?)
     ON CONFLICT (name, speaker) DO UPDATE SET ref = excluded.ref, at = excluded.at`,
    [name, speaker, ref, tx.now],
  )
}

/** Newest first. */
export async function rememberedIds(reader: Reader, name: string): Promise<string[]> {
  const rows = await reader.all<{ ref: string }>(
    'SELECT ref FROM said_ids WHERE name = ? ORDER BY at DESC LIMIT 20',
    [name],
  )
  return rows.map(({ ref }) => ref)
}

export async function rememberedBy(
  reader: Reader,
  speaker: string,
  name: string,
): Promise<string | undefined> {
  const row = await reader.get<{ ref: string }>('SELECT ref FROM said_ids WHERE name = ? AND speaker = ?', [
    name,
    speaker,
  ])
  return row?.ref
}
