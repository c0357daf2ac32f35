import { hash, randomBytes } from 'node:crypto'
import { OPERATOR, type Principal } from '../base/agent.ts'
import { AppError } from '../base/errors.ts'
import { formatId, parseId } from '../base/ids.ts'
import type { Store } from '../store/store.ts'
import {
  findToken,
  insertToken,
  isKnownToken,
  readTokens,
  revokeTokens,
  type TokenHolder,
} from './store/tokens.ts'

/** Who may speak: a token names an agent, a person or the operator. Only its hash is kept, and a revoked one is dead at once. */
export interface Tokens {
  authenticate(token: string): Principal | undefined
  /** When a session in a browser ends by itself; undefined for every other token. */
  endsAt(token: string): number | undefined
  /** A token for a browser, with the rights of that person or the operator, which ends by itself. */
  mintSession(holder: Principal, lastsMs: number): Promise<{ id: string; token: string; endsAt: number }>
  /** For an agent, or the operator. `by` is for the audit. */
  mint(agent: string | null, by?: string): Promise<{ id: string; token: string }>
  mintForPerson(person: string, by?: string): Promise<{ id: string; token: string }>
  /** By token id, or all of an agent or person. Gives how many there were. */
  revoke(which: string, by?: string): Promise<number>
  list(): Promise<TokenEntry[]>
  /** Whose token it is, valid or not. */
  holder(id: string): Promise<Principal | undefined>
  /** Makes a token that the operator already holds in a file valid, such as after the store was replaced; false if it was revoked. */
  adoptOperator(token: string): Promise<boolean>
}

export interface TokenEntry {
  id: string
  agent: string
  kind: Principal['kind']
  created_at: string
  /** Of a session in a browser. */
  expires_at?: string
}

/** Long enough that guessing is hopeless, so that a plain hash is enough at rest. */
const TOKEN_BYTES = 32
const TOKEN = /^orct_[A-Za-z0-9_-]{43}$/

export function newToken(): string {
  return `orct_${randomBytes(TOKEN_BYTES).toString('base64url')}`
}

interface Valid {
  readonly principal: Principal
  readonly endsAt: number
}

export async function openTokens(store: Store, now: () => number): Promise<Tokens> {
  const known = new Map<string, Valid>()
  /** Saves a hash for each request; holds tokens that were valid, and is forgotten at every revocation. */
  const seen = new Map<string, Valid>()
  for (const row of await readTokens(store, now())) known.set(row.hash, validOf(row, row.id, row.expires_at))

  function find(token: string): Valid | undefined {
    const found = seen.get(token) ?? (TOKEN.test(token) ? known.get(hash('sha256', token)) : undefined)
    if (found === undefined || found.endsAt <= now()) return undefined
    seen.set(token, found)
    return found
  }

  async function add(
    token: string,
    holder: TokenHolder,
    by: string = OPERATOR,
    endsAt: number | null = null,
  ): Promise<string> {
    const tokenHash = hash('sha256', token)
    const key = await store.write(async (tx) => {
      const id = await insertToken(tx, holder, tokenHash, endsAt)
      const name = nameOf(holder)
      const whose = name === OPERATOR ? 'the operator' : name
      tx.audit({
        type: 'token.minted',
        class: 'private',
        actor: by,
        subject: name,
        text:
          endsAt === null
            ? `a token for ${whose} was made`
            : `a browser was signed in to the control room as ${whose}`,
        data: {
          token_id: formatId('tok', id),
          kind: principalOf(holder, id).kind,
          ...(endsAt === null ? {} : { expires_at: new Date(endsAt).toISOString() }),
        },
      })
      tx.afterCommit(() => known.set(tokenHash, validOf(holder, id, endsAt)))
      return id
    })
    return formatId('tok', key)
  }

  async function mint(holder: TokenHolder, by: string | undefined) {
    const token = newToken()
    return { id: await add(token, holder, by), token }
  }

  return {
    authenticate: (token) => find(token)?.principal,
    endsAt(token) {
      const endsAt = find(token)?.endsAt
      return endsAt === Number.POSITIVE_INFINITY ? undefined : endsAt
    },
    async mintSession(holder, lastsMs) {
      const token = newToken()
      const endsAt = now() + lastsMs
      const person = holder.kind === 'person' ? holder.person : null
      const id = await add(token, { agent: null, person }, person ?? OPERATOR, endsAt)
      return { id, token, endsAt }
    },
    mint: (agent, by) => mint({ agent, person: null }, by),
    mintForPerson: (person, by) => mint({ agent: null, person }, by),
    async revoke(which, by = OPERATOR) {
      const id = parseId('tok', which)
      return await store.write(async (tx) => {
        const hashes = await revokeTokens(
          tx,
          id === undefined ? { holder: which === OPERATOR ? null : which } : { id },
        )
        if (hashes.length > 0) {
          tx.audit({
            type: 'token.revoked',
            class: 'private',
            actor: by,
            text: `${hashes.length === 1 ? 'a token' : `${hashes.length} tokens`} (${which}) revoked`,
            data: { which, count: hashes.length },
          })
        }
        tx.afterCommit(() => {
          seen.clear()
          for (const gone of hashes) known.delete(gone)
        })
        return hashes.length
      })
    },
    async list() {
      return (await readTokens(store, now())).map((row) => ({
        id: formatId('tok', row.id),
        agent: nameOf(row),
        kind: principalOf(row, row.id).kind,
        created_at: new Date(row.created_at).toISOString(),
        ...(row.expires_at === null ? {} : { expires_at: new Date(row.expires_at).toISOString() }),
      }))
    },
    async holder(id) {
      const key = parseId('tok', id)
      const row = key === undefined ? undefined : await findToken(store, key)
      return row === undefined ? undefined : principalOf(row, row.id)
    },
    async adoptOperator(token) {
      if (!TOKEN.test(token)) {
        throw new AppError('CONFIG_INVALID', 'The file of the operator token does not hold a token', {
          hint: 'Delete the file; the service makes a new one at its next start.',
        })
      }
      const tokenHash = hash('sha256', token)
      if (known.has(tokenHash)) return true
      if (await isKnownToken(store, tokenHash)) return false
      await add(token, { agent: null, person: null })
      return true
    },
  }
}

function principalOf({ agent, person }: TokenHolder, key: number): Principal {
  const tokenId = formatId('tok', key)
  if (person !== null) return { kind: 'person', person, tokenId }
  return agent === null ? { kind: 'operator', tokenId } : { kind: 'agent', agent, tokenId }
}

function validOf(holder: TokenHolder, key: number, endsAt: number | null): Valid {
  return { principal: principalOf(holder, key), endsAt: endsAt ?? Number.POSITIVE_INFINITY }
}

function nameOf({ agent, person }: TokenHolder): string {
  return agent ?? person ?? OPERATOR
}
