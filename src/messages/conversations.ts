import { parseId } from '../base/ids.ts'
import type { Team } from '../commands/team.ts'
import { observe, type PingPong, pairOf } from '../rules/loop-breaker.ts'
import type { Reader } from '../store/store.ts'
import type { MessageRow } from './messages.ts'

/** The position of a message in a conversation: how many replies led to it, and which message began it. */
interface Cause {
  key: number
  hop: number
  correlation: number
  /** False if the cause was inferred, because the sender didn't name the message it answers. */
  isNamed: boolean
}

/**
 * The loop breaker (ask 12). Parks a conversation and asks a person when two agents keep answering each other, or when a
 * chain of replies exceeds its limit.
 */
export interface Conversations {
  /** The message that this agent's next message answers: the one it names, else the one it got last. */
  causeOf(
    reader: Reader,
    agent: string,
    inReplyTo: string | undefined,
    now: number,
  ): Promise<Cause | undefined>
  handedOut(agent: string, cause: Cause, now: number): void
  /** Counts a message, and returns why the conversation must be parked, if it must. */
  observe(team: Team, from: string, to: string, hop: number, now: number): string | undefined
  /** Resets the counts of a pair. */
  forget(pair: string): void
}

/** A message handed out longer ago than this doesn't count as the cause of what the agent sends. */
const IMPLIED_CAUSE_MS = 10 * 60_000

export function createConversations(): Conversations {
  const lastHanded = new Map<string, { cause: Cause; at: number }>()
  const pingPongs = new Map<string, PingPong>()

  return {
    async causeOf(reader, agent, inReplyTo, now) {
      const key = inReplyTo === undefined ? undefined : parseId('msg', inReplyTo)
      if (key !== undefined) {
        const row = await reader.get<Pick<MessageRow, 'hop' | 'correlation'>>(
          'SELECT hop, correlation FROM messages WHERE seq = ? AND (recipient = ? OR sender = ?)',
          [key, agent, agent],
        )
        if (row !== undefined) return { key, hop: row.hop, correlation: row.correlation, isNamed: true }
      }
      const handed = lastHanded.get(agent)
      return handed !== undefined && now - handed.at < IMPLIED_CAUSE_MS ? handed.cause : undefined
    },
    handedOut(agent, cause, now) {
      lastHanded.set(agent, { cause, at: now })
    },
    observe(team, from, to, hop, now) {
      const { hops, pingPong } = team.config.limits
      if (hops !== undefined && hop > hops) {
        return `a chain of ${hop} replies led to this message (limits.hops is ${hops})`
      }
      if (pingPong === undefined) return undefined
      const pair = pairOf(from, to)
      const seen = observe(pingPongs.get(pair), from, now, pingPong)
      pingPongs.set(pair, seen.state)
      if (seen.verdict === 'ok') return undefined
      return `${from} and ${to} answered each other ${seen.turns} times in ${Math.round(pingPong.withinMs / 1000)} s`
    },
    forget(pair) {
      pingPongs.delete(pair)
      for (const agent of pair.split(' ')) lastHanded.delete(agent)
    },
  }
}
