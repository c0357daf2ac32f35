export interface Log {
  debug(fields: Record<string, unknown>, text: string): void
  info(fields: Record<string, unknown>, text: string): void
  warn(fields: Record<string, unknown>, text: string): void
  error(fields: Record<string, unknown>, text: string): void
}
