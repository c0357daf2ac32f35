import { parseDuration } from '../base/durations.ts'
import type { PingPongPolicy, RatePolicy } from '../rules/rule.ts'
import type { Report } from '../yaml/problem.ts'
import { type ConfigInput, DEFAULTS, MAX_MESSAGE_BYTES } from './schema.ts'

/** `undefined` means that the limit is off. */
export interface Limits {
  readonly rate: RatePolicy | undefined
  readonly pairRate: RatePolicy | undefined
  readonly hops: number | undefined
  readonly pingPong: PingPongPolicy | undefined
  readonly messageBytes: number
  readonly spend: SpendCaps
}

/** In the currency of the prices. */
interface SpendCaps {
  readonly perAgent: number | undefined
  readonly total: number | undefined
}

type LimitsInput = NonNullable<ConfigInput['limits']>

export function resolveLimits(written: LimitsInput): Limits {
  const rate = rateOf(written.rate, DEFAULTS.rate)
  return {
    rate,
    // Defaults to `rate`, so that `rate: off` turns both off and raising `rate` raises both.
    pairRate: rateOf(written.pair_rate, rate),
    hops: isOff(written.hops) ? undefined : (written.hops ?? DEFAULTS.hops),
    pingPong: pingPongOf(written.ping_pong),
    messageBytes: written.message_bytes ?? MAX_MESSAGE_BYTES,
    spend: { perAgent: written.spend?.per_agent, total: written.spend?.total },
  }
}

function rateOf(written: LimitsInput['rate'], otherwise: RatePolicy | undefined): RatePolicy | undefined {
  if (written === undefined) return otherwise
  return isOff(written) ? undefined : { perMinute: written.per_minute, burst: written.burst }
}

function pingPongOf(written: LimitsInput['ping_pong']): PingPongPolicy | undefined {
  if (written === undefined) return DEFAULTS.pingPong
  return isOff(written) ? undefined : { turns: written.turns, withinMs: parseDuration(written.within) }
}

/** YAML 1.2 reads `off` as text, YAML 1.1 as false. */
function isOff(value: unknown): value is 'off' | false {
  return value === 'off' || value === false
}

/** Per million tokens. */
export interface Price {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
}

/** By prefix of the model's name, longest first. */
export type Prices = readonly (readonly [prefix: string, price: Price])[]

export function resolvePrices(input: ConfigInput, warn: Report): Prices {
  const written = Object.entries(input.prices ?? {})
  if (written.length === 0 && input.limits?.spend !== undefined) {
    warn(['limits', 'spend'], 'has no effect without prices', 'Add "prices:" for the models in use.', 'key')
  }
  return written
    .map(([prefix, price]): [string, Price] => [
      prefix,
      {
        input: price.input,
        output: price.output,
        cacheRead: price.cache_read ?? price.input,
        cacheWrite: price.cache_write ?? price.input,
      },
    ])
    .sort(([a], [b]) => b.length - a.length)
}
