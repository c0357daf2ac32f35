import type { Report } from '../yaml/problem.ts'
import type { ConfigInput } from './schema.ts'

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
