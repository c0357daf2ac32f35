import type { HandlerContext, Handlers } from '../commands/commands.ts'
import { carryOut } from '../commands/handle.ts'
import type { Team } from '../commands/team.ts'
import type { Receipt } from '../protocol/receipt.ts'
import type { Registry } from '../protocol/registry.ts'
import type { Tx } from '../store/store.ts'
import { clearTimer, setTimer } from '../store/timer-rows.ts'
import type { Timers } from '../store/timers.ts'
import { heldCommand } from './approvals.ts'
import { heldBy, unpark } from './hold-command.ts'
import type { HumanRequestRow } from './people.ts'

/** After a rejection, a conversation stays parked this long before the two agents may try again. */
const PARKED_AFTER_REJECTION_MS = 3600_000

export interface ReleaseOptions {
  registry: Registry
  handlers: Handlers
  timers: Pick<Timers, 'setFor'>
  team(): Team
  /** A parked conversation continues: its counts begin at zero. */
  onContinued(pair: string): void
}

/** Carries out held commands, and continues conversations that the loop breaker parked. */
export function createRelease({ registry, handlers, timers, team, onContinued }: ReleaseOptions) {
  /** In the name of the speaker, not of the person who approved it. */
  function contextOf(tx: Tx, row: HumanRequestRow, approved: boolean): HandlerContext {
    const { speaker, principal, person, onBehalf, saidIn } = heldBy(row)
    return {
      team: team(),
      tx,
      speaker: { name: speaker, principal, onBehalf, ...(person === undefined ? {} : { person }) },
      approved,
      ...(saidIn === undefined ? {} : { saidIn }),
      once: (_, compute) => compute(),
    }
  }

  async function continueConversation(tx: Tx, pair: string) {
    await unpark(tx, pair)
    await clearTimer(tx, 'unpark', pair)
    tx.afterCommit(() => onContinued(pair))
  }

  return {
    contextOf,
    continueConversation,

    async perform(tx: Tx, row: HumanRequestRow): Promise<Receipt> {
      if (row.purpose === 'permission') return { status: 'ok', result: `${row.asker} may go on` }
      const command = heldCommand(row)
      const { pair } = heldBy(row)
      if (pair !== undefined) await continueConversation(tx, pair)
      const definition = registry.find(command.type)
      const handler = handlers[command.type]
      if (definition === undefined || handler === undefined) {
        return { status: 'error', code: 'UNKNOWN_COMMAND', message: `Unknown command type: ${command.type}` }
      }
      return await carryOut(contextOf(tx, row, true), handler, definition, command)
    },

    /** Keeps the conversation parked for a while, because nobody approved. */
    async keepParked(tx: Tx, row: HumanRequestRow) {
      const { pair } = heldBy(row)
      if (pair === undefined) return
      const dueAt = tx.now + PARKED_AFTER_REJECTION_MS
      await setTimer(tx, 'unpark', pair, dueAt)
      tx.afterCommit(() => timers.setFor(dueAt))
    },
  }
}
