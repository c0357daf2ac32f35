import type { Prices } from '../config/config.ts'
import type { Usage } from '../runtimes/runtime.ts'

const MILLION = 1_000_000

/** In the currency of the prices; undefined where no price is known for the model. */
export function costOf(
  prices: Prices,
  model: string | undefined,
  spent: NonNullable<Usage['spent']>,
): number | undefined {
  const price = model === undefined ? undefined : prices.find(([prefix]) => model.startsWith(prefix))?.[1]
  if (price === undefined) return undefined
  return (
    (spent.input * price.input +
      spent.output * price.output +
      spent.cacheRead * price.cacheRead +
      spent.cacheWrite * price.cacheWrite) /
    MILLION
  )
}
