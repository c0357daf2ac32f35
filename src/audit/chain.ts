import { hash } from 'node:crypto'
import { storable } from '../store/storable.ts'
import type { SealedEntry } from '../store/store.ts'
import type { AuditDraft, AuditEntry } from './entry.ts'

/** Where in which chain an entry goes. */
export interface ChainPlace {
  chain: string
  /** 1 for the first entry of a chain, then without gaps. */
  seq: number
  /** As `Date.toISOString` gives it, so that a store may keep it as a number. */
  at: string
  /** The hash of the entry before, or `genesisHash(chain)`. */
  prev: string
}

/** What the hash covers besides the data and the hash before. A store may give null for what is absent. */
export interface HashedFields
  extends Pick<AuditEntry, 'chain' | 'seq' | 'at' | 'type' | 'class' | 'actor' | 'text'> {
  subject?: string | null | undefined
  confidence?: number | null | undefined
}

/** Names the encoding below: a change of it needs another name, so that old chains stay verifiable. */
const FORMAT = 'orchub-audit-1'

export function genesisHash(chain: string): string {
  return hash('sha256', chain, 'hex')
}

/**
 * A JSON array of fixed order is unambiguous: no two different entries have the same text. The data goes in as
 * the text that is stored, so that verification never depends on parsing and serialising giving the same bytes.
 */
export function hashEntry(entry: HashedFields, dataJson: string, prev: string): string {
  const { chain, seq, at, type, class: kept, actor, subject, text, confidence } = entry
  const fields = [
    FORMAT,
    chain,
    seq,
    at,
    type,
    kept,
    actor,
    subject ?? null,
    text,
    confidence ?? null,
    dataJson,
    prev,
  ]
  return hash('sha256', JSON.stringify(fields), 'hex')
}

/** The draft must be redacted by now: what is sealed cannot be taken back. */
export function sealEntry(
  draft: AuditDraft,
  place: ChainPlace,
  dataJson: string = serializeData(draft.data),
): SealedEntry {
  const entry: AuditEntry = {
    chain: place.chain,
    seq: place.seq,
    at: place.at,
    type: draft.type,
    class: draft.class,
    actor: storable(draft.actor),
    text: storable(draft.text),
    prev: place.prev,
    hash: '',
  }
  if (draft.subject !== undefined) entry.subject = storable(draft.subject)
  if (draft.confidence !== undefined) entry.confidence = draft.confidence
  if (draft.data !== undefined) entry.data = draft.data
  entry.hash = hashEntry(entry, dataJson, place.prev)
  return { entry, dataJson }
}

export function serializeData(data: Record<string, unknown> | undefined): string {
  return data === undefined ? '{}' : JSON.stringify(data)
}
