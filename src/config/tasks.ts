import { parseDuration } from './duration.ts'
import type { Report } from './problem.ts'
import type { ConfigInput } from './schema.ts'
import { didYouMean } from './suggestion.ts'

/** `undefined` where orc.yaml is silent and the default of the tasks holds. */
export interface TasksConfig {
  readonly timeoutMs: number | undefined
  readonly retries: number | undefined
  readonly depth: number | undefined
  readonly reminders: number | undefined
  readonly checks: Readonly<Record<string, CheckConfig>>
  /** A name from `models`. */
  readonly judge: string | undefined
}

export interface CheckConfig {
  readonly command: string
  readonly timeoutMs: number
}

const CHECK_MS = 5 * 60_000

export function resolveTasks(
  written: NonNullable<ConfigInput['tasks']>,
  models: Readonly<Record<string, unknown>>,
  report: Report,
): TasksConfig {
  const judge = typeof written.judge === 'string' && written.judge !== 'off' ? written.judge : undefined
  if (judge !== undefined && !Object.hasOwn(models, judge)) {
    const otherwise = 'Name one of "models", or say off.'
    report(
      ['tasks', 'judge'],
      `There is no model "${judge}"`,
      didYouMean(judge, Object.keys(models), otherwise),
    )
  }
  const checks = Object.entries(written.checks ?? {}).map(([name, { command, timeout }]) => [
    name,
    { command, timeoutMs: timeout === undefined ? CHECK_MS : parseDuration(timeout) },
  ])
  return {
    timeoutMs: written.timeout === undefined ? undefined : parseDuration(written.timeout),
    retries: written.retries,
    depth: written.depth,
    reminders: written.reminders,
    checks: Object.fromEntries(checks),
    judge,
  }
}
