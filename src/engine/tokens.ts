import { hash, randomBytes } from 'node:crypto'
import { OPERATOR, type Principal } from '../model/agent.ts'
import { AppError } from '../model/errors.ts'
import { formatId, parseId } from '../model/identifier.ts'
import type { Store } from '../store/store.ts'
import { insertToken, isKnownToken, readTokens, revokeTokens } from '../store/tokens.ts'

/** Who may speak: a token names an agent or the operator. Only its hash is kept, and a revoked one is dead at once. */
export interface Tokens {
  authenticate(token: string): Principal | undefined
  mint(agent: string | null): Promise<{ id: string; token: string }>
  /** By token id, or all of an agent's. Gives how many there were. */
  revoke(which: string): Promise<number>
  list(): Promise<{ id: string; agent: string; created_at: string }[]>
  /** Makes a token that the operator already holds in a file valid, such as after the store was replaced; false if it was revoked. */
  adoptOperator(token: string): Promise<boolean>
}

/** Long enough that guessing is hopeless, so that a plain hash is enough at rest. */
const TOKEN_BYTES = 32
const TOKEN = /^orct_[A-Za-z0-9_-]{43}$/

export function newToken(): string {
  return `orct_${randomBytes(TOKEN_BYTES).toString('base64url')}`
}

export async function openTokens(store: Store): Promise<Tokens> {
  const principals = new Map<string, Principal>()
  /** Saves a hash for each request; holds valid tokens only, and is forgotten at every revocation. */
  const seen = new Map<string, Principal>()
  for (const row of await readTokens(store)) principals.set(row.hash, principalOf(row.agent, row.id))

  async function add(token: string, agent: string | null): Promise<string> {
    const tokenHash = hash('sha256', token)
    const key = await store.write(async (tx) => {
      const id = await insertToken(tx, agent, tokenHash)
      tx.audit({
        type: 'token.minted',
        class: 'private',
        actor: OPERATOR,
        subject: agent ?? OPERATOR,
        text: `a token for ${agent ?? 'the operator'} was made`,
        data: { token_id: formatId('tok', id) },
      })
      tx.afterCommit(() => principals.set(tokenHash, principalOf(agent, id)))
      return id
    })
    return formatId('tok', key)
  }

  return {
    authenticate(token) {
      const known = seen.get(token)
      if (known !== undefined) return known
      const principal = TOKEN.test(token) ? principals.get(hash('sha256', token)) : undefined
      if (principal !== undefined) seen.set(token, principal)
      return principal
    },
    async mint(agent) {
      const token = newToken()
      return { id: await add(token, agent), token }
    },
    async revoke(which) {
      const id = parseId('tok', which)
      return await store.write(async (tx) => {
        const hashes = await revokeTokens(
          tx,
          id === undefined ? { agent: which === OPERATOR ? null : which } : { id },
        )
        if (hashes.length > 0) {
          tx.audit({
            type: 'token.revoked',
            class: 'private',
            actor: OPERATOR,
            text: `${hashes.length === 1 ? 'a token' : `${hashes.length} tokens`} (${which}) revoked`,
            data: { which, count: hashes.length },
          })
        }
        tx.afterCommit(() => {
          seen.clear()
          for (const gone of hashes) principals.delete(gone)
        })
        return hashes.length
      })
    },
    async list() {
      return (await readTokens(store)).map((row) => ({
        id: formatId('tok', row.id),
        agent: row.agent ?? OPERATOR,
        created_at: new Date(row.created_at).toISOString(),
      }))
    },
    async adoptOperator(token) {
      if (!TOKEN.test(token)) {
        throw new AppError('CONFIG_INVALID', 'The file of the operator token does not hold a token', {
          hint: 'Delete the file; the service makes a new one at its next start.',
        })
      }
      const tokenHash = hash('sha256', token)
      if (principals.has(tokenHash)) return true
      if (await isKnownToken(store, tokenHash)) return false
      await add(token, null)
      return true
    },
  }
}

function principalOf(agent: string | null, key: number): Principal {
  const tokenId = formatId('tok', key)
  return agent === null ? { kind: 'operator', tokenId } : { kind: 'agent', agent, tokenId }
}
