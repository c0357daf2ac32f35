/** Visibility of an entry: anyone with a token (public), the parties and the operator (internal), the operator (private). */
export const AUDIT_CLASSES = ['public', 'internal', 'private'] as const
export type AuditClass = (typeof AUDIT_CLASSES)[number]

/** An entry before sealing, which adds the sequence number, time and hashes. */
export interface AuditDraft {
  /** Dotted type, `noun.verb`: `message.accepted`, `command.blocked`, `security.sender_mismatch` … */
  type: string
  class: AuditClass
  /** An agent's name, `operator` or `orchestrator`. */
  actor: string
  /** The recipient or the target, if there is one. */
  subject?: string
  /** A readable line (S3.22). */
  text: string
  confidence?: number
  data?: Record<string, unknown>
}

/** A sealed entry. `hash` covers every other field and the previous hash, which reveals any change (C12). */
export interface AuditEntry extends AuditDraft {
  /** The daemon that owns the chain; a single host has one chain. */
  chain: string
  seq: number
  /** ISO 8601, never earlier than the previous entry. */
  at: string
  prev: string
  hash: string
}
