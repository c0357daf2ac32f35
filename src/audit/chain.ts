import { hash } from 'node:crypto'
import { type Seal, type SealedEntry, storable } from '../store/store.ts'
import type { AuditDraft, AuditEntry } from './entry.ts'
import { mayHoldSecret, type Redactor } from './redact.ts'

/** The position of an entry in a chain. */
export interface ChainPosition {
  chain: string
  /** Starts at 1, without gaps. */
  seq: number
  /** In the format of `Date.toISOString`, which allows a store to keep it as a number. */
  at: string
  /** The hash of the previous entry, or `genesisHash(chain)`. */
  prev: string
}

/** The hashed fields besides the data and the previous hash. A store may pass null for absent fields. */
export interface HashedFields
  extends Pick<AuditEntry, 'chain' | 'seq' | 'at' | 'type' | 'class' | 'actor' | 'text'> {
  subject?: string | null | undefined
  confidence?: number | null | undefined
}

/** Identifies the encoding below. Change it together with the encoding to keep old chains verifiable. */
const FORMAT = 'orchub-audit-1'

export function genesisHash(chain: string): string {
  return hash('sha256', chain, 'hex')
}

/**
 * A JSON array of fixed order is unambiguous: different entries have different texts. The data is hashed as stored text,
 * because parsing and serialising may not reproduce the same bytes.
 */
export function hashEntry(entry: HashedFields, dataJson: string, prev: string): string {
  const { chain, seq, at, type, class: visibility, actor, subject, text, confidence } = entry
  const fields = [
    FORMAT,
    chain,
    seq,
    at,
    type,
    visibility,
    actor,
    subject ?? null,
    text,
    confidence ?? null,
    dataJson,
    prev,
  ]
  return hash('sha256', JSON.stringify(fields), 'hex')
}

/** Redact the draft first: a sealed entry can't be changed. */
export function sealEntry(
  draft: AuditDraft,
  position: ChainPosition,
  dataJson: string = serializeData(draft.data),
): SealedEntry {
  const entry: AuditEntry = {
    chain: position.chain,
    seq: position.seq,
    at: position.at,
    type: draft.type,
    class: draft.class,
    actor: storable(draft.actor),
    text: storable(draft.text),
    prev: position.prev,
    hash: '',
  }
  if (draft.subject !== undefined) entry.subject = storable(draft.subject)
  if (draft.confidence !== undefined) entry.confidence = draft.confidence
  if (draft.data !== undefined) entry.data = draft.data
  entry.hash = hashEntry(entry, dataJson, position.prev)
  return { entry, dataJson }
}

function serializeData(data: Record<string, unknown> | undefined): string {
  return data === undefined ? '{}' : JSON.stringify(data)
}

/** The only way into the log: redacts, numbers and hashes (C12). */
export function sealWith(redactor: Redactor): Seal {
  const { redact, redactJson } = redactor

  function redacted(draft: AuditDraft, json: string) {
    const dataJson = redactJson(json)
    const clean = { ...draft, actor: redact(draft.actor), text: redact(draft.text) }
    if (draft.subject !== undefined) clean.subject = redact(draft.subject)
    if (dataJson !== json) clean.data = JSON.parse(dataJson) as Record<string, unknown>
    return { clean, dataJson }
  }

  return (drafts, head, time) => {
    const at = new Date(time).toISOString()
    let { seq, hash } = head
    const entries: SealedEntry[] = []
    for (const draft of drafts) {
      const json = serializeData(draft.data)
      const { clean, dataJson } = isHarmless(draft, json)
        ? { clean: draft, dataJson: json }
        : redacted(draft, json)
      seq++
      const sealed = sealEntry(clean, { chain: head.chain, seq, at, prev: hash }, dataJson)
      hash = sealed.entry.hash
      entries.push(sealed)
    }
    return { entries, head: { chain: head.chain, seq, hash } }
  }
}

/** Checks all parts at once: most entries hold nothing like a secret. */
function isHarmless({ actor, subject, text }: AuditDraft, json: string): boolean {
  const all = `${actor}\n${subject}\n${text}\n${json}`
  return !all.includes('\\u') && !mayHoldSecret(all)
}
