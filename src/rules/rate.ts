import type { RatePolicy } from './rule.ts'

/** Plain data, so that it can be kept anywhere; `undefined` stands for a bucket nobody has used yet: a full one. */
export interface Bucket {
  readonly tokens: number
  readonly at: number
}

type Taken =
  | { readonly ok: true; readonly bucket: Bucket }
  | { readonly ok: false; readonly bucket: Bucket; readonly retryAfterMs: number }

/** Rounding may leave 0.9999999 after exactly the promised wait. What is lent here is missing from the next token. */
const ROUNDING = 1e-6

/** Takes one token (S1.20, C18). A refusal costs nothing and says when to try again. */
export function take(bucket: Bucket | undefined, now: number, policy: RatePolicy): Taken {
  const tokens = refilled(bucket, now, policy)
  if (tokens + ROUNDING >= 1) return { ok: true, bucket: { tokens: tokens - 1, at: now } }
  const wait = ((1 - tokens) * 60_000) / policy.perMinute
  return { ok: false, bucket: { tokens, at: now }, retryAfterMs: Math.max(1, Math.ceil(wait - ROUNDING)) }
}

function refilled(bucket: Bucket | undefined, now: number, policy: RatePolicy): number {
  if (bucket === undefined) return policy.burst
  // A clock set back must neither lend tokens nor lock the agent out until the old time comes round again.
  const elapsed = Math.max(0, now - bucket.at)
  // The policy may have been lowered since, so the burst bounds what was saved as well.
  return Math.min(policy.burst, bucket.tokens + (elapsed * policy.perMinute) / 60_000)
}
