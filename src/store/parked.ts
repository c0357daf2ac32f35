import type { Reader, Tx } from './store.ts'

/** Conversations that the loop breaker stopped, by their pair of agents, and the request that asks a person. */
export interface ParkedRow {
  pair: string
  request: number
}

export async function readParked(reader: Reader): Promise<ParkedRow[]> {
  return await reader.all<ParkedRow>('SELECT pair, request FROM parked')
}

export async function park(tx: Tx, pair: string, request: number): Promise<void> {
  await tx.run('INSERT INTO parked (pair, request, at) VALUES (?, ?, ?) ON CONFLICT (pair) DO NOTHING', [
    pair,
    request,
    tx.now,
  ])
}

export async function unpark(tx: Tx, pair: string): Promise<void> {
  await tx.run('DELETE FROM parked WHERE pair = ?', [pair])
}
