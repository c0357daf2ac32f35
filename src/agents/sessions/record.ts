import type { SessionState } from '../../base/agent.ts'
import { AppError, reasonOf } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import type { Store } from '../../store/store.ts'
import { setSession } from '../store/agents.ts'

/** Writes down what became of an agent's session, and whether it is in a turn; left out: as it was. */
export type RecordState = (
  agent: string,
  session: SessionState,
  evidence: string,
  isInTurn?: boolean,
) => Promise<void>

export function createRecord(store: Store, log: Log): RecordState {
  return async (agent, session, evidence, isInTurn) => {
    try {
      await store.write(async (tx) => {
        await setSession(tx, agent, session, isInTurn)
        tx.audit({
          type: 'session.changed',
          class: 'internal',
          actor: agent,
          text: `${agent} is ${session}: ${evidence}`,
          data: { agent, session, evidence },
        })
      })
    } catch (error) {
      log.error({ agent, err: error }, 'a change of state could not be stored')
    }
  }
}

export function explained(error: unknown): string {
  return error instanceof AppError && error.hint !== undefined
    ? `${error.message}. ${error.hint}`
    : reasonOf(error)
}
