import { Cron } from 'croner'
import type { Trigger } from '../terms.ts'

/** The next time strictly after `after`; undefined if the pattern never matches. */
export function nextRun(
  { cron, timezone }: Pick<Trigger, 'cron' | 'timezone'>,
  after: number,
): number | undefined {
  return new Cron(cron, { timezone, paused: true }).nextRun(new Date(after))?.getTime()
}
