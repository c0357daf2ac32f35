import type { EngineParts, HandlerContext } from '../commands/context.ts'
import { carryOut } from '../commands/handle.ts'
import type { Handlers } from '../commands/handler.ts'
import { unpark } from '../messages/store/parked.ts'
import type { Receipt } from '../protocol/receipt.ts'
import type { Tx } from '../store/store.ts'
import { clearTimer, setTimer } from '../store/timer-rows.ts'
import { heldCommand } from './approvals.ts'
import { heldBy } from './hold-command.ts'
import type { HumanRequestRow } from './store/human-requests.ts'

/** After a person said no, the two stay apart this long before they may try again. */
const PARKED_AFTER_REJECTION_MS = 3600_000

/** What a verdict sets in motion: held commands, and conversations that the loop breaker parked. */
export function createHeld(parts: EngineParts, handlers: Handlers) {
  /** In the name of whoever said it, not of whoever let it pass. */
  function contextOf(tx: Tx, row: HumanRequestRow, approved: boolean): HandlerContext {
    const { speaker, principal, person, onBehalf, saidIn } = heldBy(row)
    return {
      parts,
      team: parts.team(),
      tx,
      speaker: { name: speaker, principal, onBehalf, ...(person === undefined ? {} : { person }) },
      approved,
      ...(saidIn === undefined ? {} : { saidIn }),
      once: (_, compute) => compute(),
    }
  }

  async function letGoOn(tx: Tx, pair: string) {
    await unpark(tx, pair)
    await clearTimer(tx, 'unpark', pair)
    tx.afterCommit(() => parts.conversations.forget(pair))
  }

  return {
    contextOf,
    letGoOn,

    async perform(tx: Tx, row: HumanRequestRow): Promise<Receipt> {
      if (row.purpose === 'permission') return { status: 'ok', result: `${row.asker} may go on` }
      const command = heldCommand(row)
      const { pair } = heldBy(row)
      if (pair !== undefined) await letGoOn(tx, pair)
      const definition = parts.registry.find(command.type)
      const handler = handlers[command.type]
      if (definition === undefined || handler === undefined) {
        return { status: 'error', code: 'UNKNOWN_COMMAND', message: `Unknown command type: ${command.type}` }
      }
      return await carryOut(contextOf(tx, row, true), handler, definition, command)
    },

    /** Nobody let them go on, so they stay parked for a while, and may then try again. */
    async keepApart(tx: Tx, row: HumanRequestRow) {
      const { pair } = heldBy(row)
      if (pair === undefined) return
      const dueAt = tx.now + PARKED_AFTER_REJECTION_MS
      await setTimer(tx, 'unpark', pair, dueAt)
      tx.afterCommit(() => parts.timers.setFor(dueAt))
    },
  }
}
