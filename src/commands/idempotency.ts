import { AppError } from '../base/errors.ts'
import type { Receipt } from '../protocol/receipt.ts'
import type { Tx } from '../store/store.ts'
import { findReceipt, keepReceipt } from './store/idempotency.ts'

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
