import type { Reader, Tx } from '../../store/store.ts'

/** Only the hash of a token is ever stored. Without an agent and without a person it is the operator's. */
export interface TokenRow {
  id: number
  agent: string | null
  person: string | null
  hash: string
  created_at: number
  revoked_at: number | null
  /** Of a session in a browser; null for a token, which counts until it is revoked. */
  expires_at: number | null
}

export type TokenHolder = Pick<TokenRow, 'agent' | 'person'>

export async function insertToken(
  tx: Tx,
  { agent, person }: TokenHolder,
  hash: string,
  expiresAt: number | null = null,
): Promise<number> {
  const id = await tx.nextKey('tok')
  await tx.run(
    'INSERT INTO tokens (id, agent, person, hash, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?)',
    [id, agent, person, hash, tx.now, expiresAt],
  )
  return id
}

/** Those that count at that time. */
export async function readTokens(reader: Reader, now = 0): Promise<TokenRow[]> {
  return await reader.all<TokenRow>(
    'SELECT * FROM tokens WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?) ORDER BY id',
    [now],
  )
}

export async function findToken(reader: Reader, id: number): Promise<TokenRow | undefined> {
  return await reader.get<TokenRow>('SELECT * FROM tokens WHERE id = ?', [id])
}

/** Revokes one token, or all of an agent or person of that name; gives the hashes that no longer count. */
export async function revokeTokens(
  tx: Tx,
  which: { id: number } | { holder: string | null },
): Promise<string[]> {
  const [column, value] =
    'id' in which ? ['id', which.id] : ["COALESCE(agent, person, '')", which.holder ?? '']
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
