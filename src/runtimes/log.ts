/** The engine's fits. */
export interface Log {
  debug(fields: Record<string, unknown>, text: string): void
  warn(fields: Record<string, unknown>, text: string): void
}
