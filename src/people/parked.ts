import { formatId } from '../base/ids.ts'
import type { Reader, Tx } from '../store/store.ts'

/** A conversation that the loop breaker stopped, by its pair of agents, and the request that asks a person about it. */
interface ParkedRow {
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

/** The key of a conversation: the same for both directions. */
export function pairOf(a: string, b: string): string {
  return a < b ? `${a} ${b}` : `${b} ${a}`
}

export function parkedReason(from: string, to: string, request: number): string {
  return `the conversation between ${from} and ${to} is parked until a person decides on ${formatId('req', request)}`
}
