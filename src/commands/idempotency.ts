import { AppError } from '../base/errors.ts'
import type { Receipt } from '../protocol/receipt.ts'
import type { MaybePromise, Reader, Tx } from '../store/store.ts'
import type { CommandAnswer } from './commands.ts'

/** An idempotency key, the speaker that sent it, and the digest of its command (C25). */
export interface CommandKey {
  readonly owner: string
  readonly key: string
  readonly digest: string
}

export function storeCommandReceipt(tx: Tx, key: CommandKey | undefined, receipt: Receipt): void {
  if (key === undefined) return
  storeReceipt(tx, key.owner, key.key, { digest: key.digest, receipt: JSON.stringify(receipt) })
}

/** The receipt of the same command, sent before with the same key; a conflict if it was another command. */
export async function findCommandReceipt(
  reader: Reader,
  key: CommandKey | undefined,
): Promise<Receipt | AppError | undefined> {
  const earlier = key === undefined ? undefined : await findReceipt(reader, key.owner, key.key)
  if (earlier === undefined) return undefined
  return earlier.digest === key?.digest ? (JSON.parse(earlier.receipt) as Receipt) : conflict(key!)
}

/** Commands that act outside the store right now: a repetition waits for the first instead of acting again. */
export function createInFlight() {
  const running = new Map<string, { digest: string; answer: CommandAnswer }>()
  return {
    async join(key: CommandKey | undefined, act: () => CommandAnswer): CommandAnswer {
      if (key === undefined) return await act()
      const name = JSON.stringify([key.owner, key.key])
      const other = running.get(name)
      if (other !== undefined) return other.digest === key.digest ? await other.answer : conflict(key)
      const answer = act().finally(() => running.delete(name))
      running.set(name, { digest: key.digest, answer })
      return await answer
    },
  }
}

function conflict({ key }: CommandKey): AppError {
  return new AppError(
    'IDEMPOTENCY_CONFLICT',
    `The idempotency key "${key.slice(0, 100)}" was used before with another command`,
    { hint: 'Use a new key for each command, and the same key only to repeat the same one.' },
  )
}

interface StoredReceipt {
  /** Digest of the command, to notice the same key with another command. */
  digest: string
  receipt: string
}

/** Keys are kept forever, like messages: an effect is never repeated, however late the repetition comes (C25). */
export function findReceipt(
  reader: Reader,
  principal: string,
  key: string,
): MaybePromise<StoredReceipt | undefined> {
  return reader.get<StoredReceipt>(
    'SELECT digest, receipt FROM idempotency WHERE principal = ? AND key = ?',
    [principal, key],
  )
}

export function storeReceipt(tx: Tx, principal: string, key: string, stored: StoredReceipt): void {
  tx.run('INSERT INTO idempotency (principal, key, digest, receipt, at) VALUES (?, ?, ?, ?, ?)', [
    principal,
    key,
    stored.digest,
    stored.receipt,
    tx.now,
  ])
}

/** Replaces the receipt of a key that may be used again for something else. */
export function replaceReceipt(tx: Tx, principal: string, key: string, stored: StoredReceipt): void {
  tx.run(
    `INSERT INTO idempotency (principal, key, digest, receipt, at) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (principal, key) DO UPDATE SET digest = excluded.digest, receipt = excluded.receipt, at = excluded.at`,
    [principal, key, stored.digest, stored.receipt, tx.now],
  )
}
