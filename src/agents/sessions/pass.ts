import { formatId, parseId } from '../../base/ids.ts'
import type { Store } from '../../store/store.ts'
import { readSession, setSessionToken } from '../store/sessions.ts'
import type { Tokens } from '../tokens.ts'

/** The token of an agent's process. One a process: the one before it dies, so that what is left of it cannot speak. */
export function createPasses(store: Store, tokens: Tokens) {
  async function revoke(agent: string) {
    const row = await readSession(store, agent)
    if (row?.token != null) await tokens.revoke(formatId('tok', row.token))
  }

  return {
    revoke,
    async issue(agent: string): Promise<string> {
      await revoke(agent)
      const { id, token } = await tokens.mint(agent)
      await store.write((tx) => setSessionToken(tx, agent, parseId('tok', id)!))
      return token
    },
  }
}
