import type { Usage } from '../runtimes/runtime.ts'
import type { UsageRow } from './store/usage.ts'

/** How full an agent's context is (C26). */
export interface Context {
  model?: string
  tokens?: number
  window?: number
  /** Of the window, in percent. */
  percent?: number
  level: 'ok' | 'warning' | 'critical' | 'unknown'
  lines?: number
  bytes?: number
}

const WARNING = 75
const CRITICAL = 90
const LEVELS = ['unknown', 'ok', 'warning', 'critical'] as const

/** What is known after this news; what it does not say stays. */
export function contextAfter(before: Context | undefined, usage: Usage): Context {
  const model = usage.model ?? before?.model
  const tokens = usage.contextTokens ?? before?.tokens
  const window = usage.contextWindow ?? before?.window
  const lines = usage.lines ?? before?.lines
  const bytes = usage.bytes ?? before?.bytes
  const percent =
    tokens === undefined || window === undefined ? undefined : Math.round((1000 * tokens) / window) / 10
  return {
    ...(model === undefined ? {} : { model }),
    ...(tokens === undefined ? {} : { tokens }),
    ...(window === undefined ? {} : { window }),
    ...(percent === undefined ? {} : { percent }),
    level: levelOf(percent),
    ...(lines === undefined ? {} : { lines }),
    ...(bytes === undefined ? {} : { bytes }),
  }
}

function levelOf(percent: number | undefined): Context['level'] {
  if (percent === undefined) return 'unknown'
  if (percent >= CRITICAL) return 'critical'
  return percent >= WARNING ? 'warning' : 'ok'
}

/** Said once for each step up; after a compaction it starts over. */
export function isWorse(before: Context | undefined, next: Context): boolean {
  const was = LEVELS.indexOf(before?.level ?? 'unknown')
  const is = LEVELS.indexOf(next.level)
  return is > was && is >= LEVELS.indexOf('warning')
}

export function rowOf(agent: string, context: Context): Omit<UsageRow, 'updated_at'> {
  return {
    agent,
    model: context.model ?? null,
    context_tokens: context.tokens ?? null,
    context_window: context.window ?? null,
    lines: context.lines ?? null,
    bytes: context.bytes ?? null,
  }
}

export function fromRow(row: UsageRow): Context {
  return contextAfter(undefined, {
    ...(row.model === null ? {} : { model: row.model }),
    ...(row.context_tokens === null ? {} : { contextTokens: row.context_tokens }),
    ...(row.context_window === null ? {} : { contextWindow: row.context_window }),
    ...(row.lines === null ? {} : { lines: row.lines }),
    ...(row.bytes === null ? {} : { bytes: row.bytes }),
  })
}
