/** How a command came, beside who said it. */
export interface Circumstances {
  /** The same key from the same speaker acts once (C25). */
  idempotencyKey?: string
  /** For an agent that says the same by a tool and in its text, in one turn: it acts once. */
  channel?: Channel
}

export type Channel = 'mcp' | 'text'
