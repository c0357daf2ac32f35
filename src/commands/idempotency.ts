import { AppError } from '../base/errors.ts'
import type { Receipt } from '../protocol/receipt.ts'
import type { MaybePromise, Reader, Tx } from '../store/store.ts'

/** Identifies a stored receipt: the owner of the key, the key, and the digest of the command (C25). */
export interface Place {
  readonly owner: string
  readonly key: string
  readonly digest: string
}

export function keepAt(tx: Tx, place: Place | undefined, receipt: Receipt): void {
  if (place === undefined) return
  const { owner, key, digest } = place
  keepReceipt(tx, owner, key, { digest, receipt: JSON.stringify(receipt) })
}

/** The receipt of the same command, sent before with the same key. */
export async function repeatedAt(tx: Tx, place: Place | undefined): Promise<Receipt | AppError | undefined> {
  if (place === undefined) return undefined
  const { owner, key, digest } = place
  const earlier = await findReceipt(tx, owner, key)
  if (earlier === undefined) return undefined
  if (earlier.digest === digest) return JSON.parse(earlier.receipt) as Receipt
  return new AppError(
    'IDEMPOTENCY_CONFLICT',
    `The idempotency key "${key.slice(0, 100)}" was used before with another command`,
    {
      hint: 'Use a new key for each command, and the same key only to repeat the same one.',
    },
  )
}

export interface StoredReceipt {
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

export function keepReceipt(tx: Tx, principal: string, key: string, stored: StoredReceipt): void {
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
