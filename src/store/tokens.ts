import type { Reader, Tx } from './store.ts'

/** Only the hash of a token is ever stored. `agent` is null for the operator's. */
export interface TokenRow {
  id: number
  agent: string | null
  hash: string
  created_at: number
  revoked_at: number | null
}

export async function insertToken(tx: Tx, agent: string | null, hash: string): Promise<number> {
  const id = await tx.nextKey('tok')
  await tx.run('INSERT INTO tokens (id, agent, hash, created_at) VALUES (?, ?, ?, ?)', [
    id,
    agent,
    hash,
    tx.now,
  ])
  return id
}

export async function readTokens(reader: Reader): Promise<TokenRow[]> {
  return await reader.all<TokenRow>('SELECT * FROM tokens WHERE revoked_at IS NULL ORDER BY id')
}

/** Revokes one token, or all of an agent; gives the hashes that no longer count. */
export async function revokeTokens(
  tx: Tx,
  which: { id: number } | { agent: string | null },
): Promise<string[]> {
  const [column, value] = 'id' in which ? ['id', which.id] : ["COALESCE(agent, '')", which.agent ?? '']
  const rows = await tx.all<{ hash: string }>(
    `UPDATE tokens SET revoked_at = ? WHERE ${column} = ? AND revoked_at IS NULL RETURNING hash`,
    [tx.now, value],
  )
  return rows.map((row) => row.hash)
}

/** Whether the store ever knew it, revoked or not. */
export async function isKnownToken(reader: Reader, hash: string): Promise<boolean> {
  return (await reader.get('SELECT id FROM tokens WHERE hash = ?', [hash])) !== undefined
}
