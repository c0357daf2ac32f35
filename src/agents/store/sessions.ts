import type { Reader, Tx } from '../../store/store.ts'

/** What is known of an agent's session across restarts of the service. */
export interface SessionRow {
  agent: string
  /** Marks its commands where they are read off a terminal. */
  nonce: string
  /** The runtime's own notes as JSON: how to find the session again, or take its conversation up. */
  kept: string | null
  /** The key of the token that its process holds. */
  token: number | null
  /** 1 while it should be running, so that it comes back with the service. */
  wanted: number
  /** What it had spent when a person last let it go on. */
  granted: number
}

export async function readSession(reader: Reader, agent: string): Promise<SessionRow | undefined> {
  return await reader.get<SessionRow>('SELECT * FROM sessions WHERE agent = ?', [agent])
}

export async function readSessions(reader: Reader): Promise<SessionRow[]> {
  return await reader.all<SessionRow>('SELECT * FROM sessions ORDER BY agent')
}

/** A new conversation: nothing of an earlier one is left but what was spent. */
export async function beginSession(tx: Tx, agent: string, nonce: string): Promise<void> {
  await tx.run(
    `INSERT INTO sessions (agent, nonce, wanted, updated_at) VALUES (?, ?, 1, ?)
     ON CONFLICT (agent) DO UPDATE SET nonce = excluded.nonce, kept = NULL, wanted = 1, updated_at = excluded.updated_at`,
    [agent, nonce, tx.now],
  )
}

export async function keepInSession(tx: Tx, agent: string, kept: string): Promise<void> {
  await tx.run('UPDATE sessions SET kept = ?, updated_at = ? WHERE agent = ?', [kept, tx.now, agent])
}

export async function forgetKept(tx: Tx, agent: string): Promise<void> {
  await tx.run('UPDATE sessions SET kept = NULL, updated_at = ? WHERE agent = ?', [tx.now, agent])
}

export async function setSessionToken(tx: Tx, agent: string, token: number): Promise<void> {
  await tx.run('UPDATE sessions SET token = ?, updated_at = ? WHERE agent = ?', [token, tx.now, agent])
}

export async function setWanted(tx: Tx, agent: string, wanted: boolean): Promise<void> {
  await tx.run('UPDATE sessions SET wanted = ?, updated_at = ? WHERE agent = ?', [
    wanted ? 1 : 0,
    tx.now,
    agent,
  ])
}

export async function grantSpending(tx: Tx, agent: string, granted: number): Promise<void> {
  await tx.run('UPDATE sessions SET granted = ?, updated_at = ? WHERE agent = ?', [granted, tx.now, agent])
}
