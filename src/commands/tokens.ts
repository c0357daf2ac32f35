import { hash, randomBytes } from 'node:crypto'
import { chmodSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { OPERATOR, type Principal } from '../base/agent.ts'
import { AppError } from '../base/errors.ts'
import { formatId, parseId } from '../base/ids.ts'
import type { Reader, Store, Tx } from '../store/store.ts'

/**
 * Authentication: a token belongs to an agent, a person or the operator. Only its hash is stored; revoking it takes effect
 * at once.
 */
export interface Tokens {
  authenticate(token: string): Principal | undefined
  /** Expiry of a browser session; undefined for every other token. */
  endsAt(token: string): number | undefined
  /** Mints a token for a browser, with the rights of that person or the operator; it expires. */
  mintSession(holder: Principal, lastsMs: number): Promise<{ id: string; token: string; endsAt: number }>
  /** Mints a token for an agent, or for the operator. `by` is for the audit. */
  mint(agent: string | null, by?: string): Promise<{ id: string; token: string }>
  mintForPerson(person: string, by?: string): Promise<{ id: string; token: string }>
  /** Revokes a token by its id, or all tokens of an agent or person. Returns how many there were. */
  revoke(which: string, by?: string): Promise<number>
  list(): Promise<TokenEntry[]>
  /** The owner of a token, valid or not. */
  holder(id: string): Promise<Principal | undefined>
  /**
   * Accepts the token in the operator's file if the store does not know it, such as after the store was replaced.
   * Returns false if it was revoked.
   */
  adoptOperator(token: string): Promise<boolean>
}

interface TokenEntry {
  id: string
  agent: string
  kind: Principal['kind']
  created_at: string
  /** Set for a browser session. */
  expires_at?: string
}

/** 256 random bits cannot be guessed, so a plain hash without salt is enough. */
const TOKEN_BYTES = 32
const TOKEN = /^orct_[A-Za-z0-9_-]{43}$/

function newToken(): string {
  return `orct_${randomBytes(TOKEN_BYTES).toString('base64url')}`
}

interface ValidToken {
  readonly principal: Principal
  readonly endsAt: number
}

export async function openTokens(store: Store, now: () => number): Promise<Tokens> {
  const known = new Map<string, ValidToken>()
  /** Caches valid tokens to avoid hashing on each request; cleared at every revocation. */
  const seen = new Map<string, ValidToken>()
  for (const row of await readTokens(store, now())) known.set(row.hash, validOf(row, row.id, row.expires_at))

  function find(token: string): ValidToken | undefined {
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
            ? `a token was created for ${whose}`
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
          for (const revoked of hashes) known.delete(revoked)
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
        throw new AppError('CONFIG_INVALID', 'The operator token file does not contain a token', {
          hint: 'Delete the file; the service creates a new token at its next start.',
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

function principalOf({ agent, person }: TokenHolder, key: number, isSession = false): Principal {
  const tokenId = formatId('tok', key)
  const session = isSession ? ({ isSession: true } as const) : {}
  if (person !== null) return { kind: 'person', person, tokenId, ...session }
  return agent === null ? { kind: 'operator', tokenId, ...session } : { kind: 'agent', agent, tokenId }
}

function validOf(holder: TokenHolder, key: number, endsAt: number | null): ValidToken {
  return { principal: principalOf(holder, key, endsAt !== null), endsAt: endsAt ?? Number.POSITIVE_INFINITY }
}

function nameOf({ agent, person }: TokenHolder): string {
  return agent ?? person ?? OPERATOR
}

/** The operator's token is in a file that only its owner can read; the store has its hash. */
export async function readOrCreateOperatorToken(stateFolder: string, tokens: Tokens): Promise<string> {
  const file = join(stateFolder, 'operator.token')
  if (!existsSync(file)) writeToken(file)
  chmodSync(file, 0o600)
  const token = readFileSync(file, 'utf8').trim()
  if (await tokens.adoptOperator(token)) return token
  // The token was revoked, but the person who starts the service is still the operator.
  writeToken(file)
  return await readOrCreateOperatorToken(stateFolder, tokens)
}

function writeToken(file: string) {
  writeFileSync(`${file}.new`, `${newToken()}\n`, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

/** Only the hash of a token is stored. A token without agent and person is the operator's. */
interface TokenRow {
  id: number
  agent: string | null
  person: string | null
  hash: string
  created_at: number
  revoked_at: number | null
  /** Set for a browser session; null for a token that is valid until it is revoked. */
  expires_at: number | null
}

type TokenHolder = Pick<TokenRow, 'agent' | 'person'>

export async function insertToken(
  tx: Tx,
  { agent, person }: TokenHolder,
  hash: string,
  expiresAt: number | null = null,
): Promise<number> {
  const id = await tx.nextKey('tok')
  tx.run('INSERT INTO tokens (id, agent, person, hash, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?)', [
    id,
    agent,
    person,
    hash,
    tx.now,
    expiresAt,
  ])
  return id
}

/** Tokens that are valid at that time. */
export async function readTokens(reader: Reader, now = 0): Promise<TokenRow[]> {
  return await reader.all<TokenRow>(
    'SELECT * FROM tokens WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?) ORDER BY id',
    [now],
  )
}

async function findToken(reader: Reader, id: number): Promise<TokenRow | undefined> {
  return await reader.get<TokenRow>('SELECT * FROM tokens WHERE id = ?', [id])
}

/** Revokes one token, or every token of that agent or person. Returns the revoked hashes. */
export async function revokeTokens(
  tx: Tx,
  which: { id: number } | { holder: string | null },
): Promise<string[]> {
  const [column, value] =
    'id' in which ? ['id', which.id] : ["COALESCE(agent, person, '')", which.holder ?? '']
  const rows = await tx.all<{ hash: string }>(
    `UPDATE tokens SET revoked_at = ? WHERE ${column} = ? AND revoked_at IS NULL RETURNING hash`,
    [tx.now, value],
  )
  return rows.map((row) => row.hash)
}

/** True if the token was ever stored, revoked or not. */
async function isKnownToken(reader: Reader, hash: string): Promise<boolean> {
  return (await reader.get('SELECT id FROM tokens WHERE hash = ?', [hash])) !== undefined
}
