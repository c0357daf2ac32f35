import type { MaybePromise, Reader, Tx } from '../../store/store.ts'

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
