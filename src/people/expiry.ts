/** Expiry of undecided requests. `APPROVAL_MS` in people.ts is the default lifetime of an approval. */
import { ORCHESTRATOR } from '../base/agent.ts'
import { AppError } from '../base/errors.ts'
import { formatId, parseId } from '../base/ids.ts'
import type { Tx } from '../store/store.ts'
import type { Timers } from '../store/timers.ts'
import type { createNotifyAsker, NotifyAskerOptions } from './notify-asker.ts'
import { decideHumanRequest, findHumanRequest, type HumanRequestRow } from './people.ts'
import type { PermissionDialogs } from './permission-dialogs.ts'

/** Purposes with an expiry. It also applies to a verdict that arrives before the timer has fired. */
const TIMED: ReadonlySet<string> = new Set(['command', 'go_on', 'permission', 'question'])

export function expiryProblem(row: HumanRequestRow, now: number): AppError | undefined {
  if (!TIMED.has(row.purpose) || now < row.expires_at) return undefined
  const at = new Date(row.expires_at).toISOString()
  return new AppError('CONFLICT', `${formatId('req', row.id)} expired at ${at}`, {
    hint: 'Nothing was executed. The asker was notified and may ask again.',
  })
}

interface ExpiryOptions {
  timers: Timers
  /** The room that asked, by the purpose of the request. */
  owners: Readonly<Record<string, { expired?(tx: Tx, row: HumanRequestRow): Promise<void> }>>
  about: NotifyAskerOptions['about']
  asker: Pick<ReturnType<typeof createNotifyAsker>, 'escalate' | 'expired'>
  permissions: Pick<PermissionDialogs, 'decided'>
  keepParked(tx: Tx, row: HumanRequestRow): Promise<void>
  notifyDecided(request: string): void
}

/** Closes expired requests without executing them, also after a crash, and notifies their askers (C9). */
export function expireRequests(options: ExpiryOptions): void {
  const { timers, owners, about, asker, permissions } = options
  timers.on('expire_request', async (tx, id) => {
    const row = await findHumanRequest(tx, parseId('req', id) ?? 0)
    if (row === undefined) return
    const closed = await decideHumanRequest(tx, row.id, { state: 'expired', by: ORCHESTRATOR, comment: null })
    if (!closed) return
    tx.afterCommit(() => options.notifyDecided(id))
    tx.audit({
      type: 'human.expired',
      class: 'internal',
      actor: ORCHESTRATOR,
      subject: row.asker,
      text: `${id} expired without a verdict: ${row.question}`,
      data: { request_id: id, kind: row.kind, ...(await about(tx, row)) },
    })
    const owner = owners[row.purpose]
    if (owner?.expired !== undefined) return await owner.expired(tx, row)
    await options.keepParked(tx, row)
    await asker.escalate(tx, row)
    if (row.purpose === 'permission') tx.afterCommit(() => permissions.decided(row.id, undefined))
    else await asker.expired(tx, row)
  })
}
