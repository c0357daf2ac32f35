import type { RatePolicy } from './rule.ts'

/** Plain data that can be stored anywhere. `undefined` means an unused, full bucket. */
export interface Bucket {
  readonly tokens: number
  readonly at: number
}

type TakenToken =
  | { readonly ok: true; readonly bucket: Bucket }
  | { readonly ok: false; readonly bucket: Bucket; readonly retryAfterMs: number }

/** Rounding may leave 0.9999999 after exactly the promised wait. The difference is deducted from the next token. */
const ROUNDING = 1e-6

/** Takes one token (S1.20, C18). A refusal costs nothing and says when to retry. */
export function take(bucket: Bucket | undefined, now: number, policy: RatePolicy): TakenToken {
  const tokens = refilled(bucket, now, policy)
  if (tokens + ROUNDING >= 1) return { ok: true, bucket: { tokens: tokens - 1, at: now } }
  const wait = ((1 - tokens) * 60_000) / policy.perMinute
  return { ok: false, bucket: { tokens, at: now }, retryAfterMs: Math.max(1, Math.ceil(wait - ROUNDING)) }
}

function refilled(bucket: Bucket | undefined, now: number, policy: RatePolicy): number {
  if (bucket === undefined) return policy.burst
  // If the clock is set back, the bucket must neither gain tokens nor block the agent until the old time returns.
  const elapsed = Math.max(0, now - bucket.at)
  // The policy may have been lowered since, so the burst also bounds the saved tokens.
  return Math.min(policy.burst, bucket.tokens + (elapsed * policy.perMinute) / 60_000)
}
