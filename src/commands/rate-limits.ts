import { type Bucket, take } from '../rules/rate.ts'
import type { RatePolicy } from '../rules/rule.ts'
import type { Team } from './team.ts'

/**
 * Limits how often an agent may send commands (C18). In memory only: after a restart the buckets are full again, which
 * errs in favour of the agents. Bounded by the number of agents and of their pairs.
 */
export interface RateLimits {
  /** Milliseconds to wait, or undefined if the command may pass. */
  takeCommand(team: Team, agent: string, now: number): number | undefined
  takePair(team: Team, from: string, to: string, now: number): number | undefined
  /**
   * Whether to write this refusal to the audit. A flood of refused commands must not fill the disk: beyond the
   * rate they are counted, and the next entry says how many came before it.
   */
  noteRefusal(
    team: Team,
    agent: string,
    kind: 'refusal' | 'security',
    now: number,
  ): { write: boolean; unwritten: number }
}

export function createRateLimits(): RateLimits {
  const commands = new Map<string, Bucket>()
  const pairs = new Map<string, Bucket>()
  const refusals = new Map<string, Bucket>()
  const unwritten = new Map<string, number>()

  function takeFrom(buckets: Map<string, Bucket>, key: string, now: number, policy: RatePolicy | undefined) {
    if (policy === undefined) return undefined
    const taken = take(buckets.get(key), now, policy)
    buckets.set(key, taken.bucket)
    return taken.ok ? undefined : taken.retryAfterMs
  }

  return {
    takeCommand: (team, agent, now) => takeFrom(commands, agent, now, team.config.limits.rate),
    takePair: (team, from, to, now) => takeFrom(pairs, `${from} ${to}`, now, team.config.limits.pairRate),
    noteRefusal(team, agent, kind, now) {
      // Counted separately, so that many small mistakes don't hide a forgery.
      const key = `${kind} ${agent}`
      const write = takeFrom(refusals, key, now, team.config.limits.rate) === undefined
      const before = unwritten.get(key) ?? 0
      unwritten.set(key, write ? 0 : before + 1)
      return { write, unwritten: before }
    },
  }
}
