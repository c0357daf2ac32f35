/** What a terminal shows at one moment: rows with their colours, each complete in itself. */
export interface Picture {
  readonly columns: number
  /** From the top. SGR sequences and text, nothing that moves the cursor. */
  readonly rows: readonly string[]
  /** Undefined while it is hidden. */
  readonly cursor: { readonly x: number; readonly y: number } | undefined
}

/** A person's hands on a terminal. */
export interface Keyboard {
  /** Bytes as a terminal sends them for keys. */
  type(keys: string): Promise<void>
  /** Text as one piece, without key presses in it. */
  paste(text: string): Promise<void>
  /** Deliveries may be written again. */
  release(): void
}
