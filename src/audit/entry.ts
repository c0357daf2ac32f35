/** Who may see an entry: anyone with a token (public), the parties and the operator (internal), the operator (private). */
export const AUDIT_CLASSES = ['public', 'internal', 'private'] as const
export type AuditClass = (typeof AUDIT_CLASSES)[number]

/** What a handler wants written down; sequence number, time and hashes are added when the entry is sealed. */
export interface AuditDraft {
  /** Dotted kind, `noun.verb`: `message.accepted`, `command.blocked`, `security.sender_mismatch` … */
  type: string
  class: AuditClass
  /** Who did it: an agent's name, `operator`, or `orchestrator`. */
  actor: string
  /** Whom it concerns, if anyone: the recipient or the target. */
  subject?: string
  /** One readable line (S3.22). */
  text: string
  confidence?: number
  data?: Record<string, unknown>
}

/** A sealed entry. `hash` covers every other field and the hash before it, so that any change shows (C12). */
export interface AuditEntry extends AuditDraft {
  /** The daemon whose chain this is; a single host has one chain. */
  chain: string
  seq: number
  /** ISO 8601, never earlier than the entry before it. */
  at: string
  prev: string
  hash: string
}
