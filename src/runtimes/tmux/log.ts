/** The engine's fits. */
export interface Log {
  warn(fields: Record<string, unknown>, text: string): void
  error(fields: Record<string, unknown>, text: string): void
}
