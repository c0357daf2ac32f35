import type { Reader, Tx } from '../../store/store.ts'

/** Conversations that the loop breaker stopped, by their pair of agents, and the request that asks a person. */
export interface ParkedRow {
  pair: string
  request: number
}

/** The request that a parked pair waits for. */
export async function parkedBy(reader: Reader, pair: string): Promise<number | undefined> {
  return (await reader.get<ParkedRow>('SELECT pair, request FROM parked WHERE pair = ?', [pair]))?.request
}

export function park(tx: Tx, pair: string, request: number): void {
  tx.run('INSERT INTO parked (pair, request, at) VALUES (?, ?, ?) ON CONFLICT (pair) DO NOTHING', [
    pair,
    request,
    tx.now,
  ])
}

export function unpark(tx: Tx, pair: string): void {
  tx.run('DELETE FROM parked WHERE pair = ?', [pair])
}
