import { Cron } from 'croner'
import type { Trigger } from '../terms.ts'

/** When it is next due, strictly after that time; undefined for a pattern that never comes. */
export function nextRun(
  { cron, timezone }: Pick<Trigger, 'cron' | 'timezone'>,
  after: number,
): number | undefined {
  return new Cron(cron, { timezone, paused: true }).nextRun(new Date(after))?.getTime()
}
