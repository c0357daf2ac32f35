import type { Clock } from '../../base/clock.ts'
import type { Spending } from '../llm.ts'
import type { ModelSettings } from '../model-settings.ts'
import { attempt } from './attempts.ts'
import { troubleOf } from './failure.ts'
import { type Line, spendingOf } from './line.ts'
import { openModel } from './provider.ts'

// The library prints what it thinks of models and settings on standard error, which is our log.
Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false })

/** Made for each call: nothing of it is kept, the key least of all. */
export async function openLine(
  settings: ModelSettings,
  key: string | undefined,
  clock: Clock,
  call: { signal?: AbortSignal; spent?(spending: Spending): void },
): Promise<Line> {
  const { model, options } = await openModel(settings, key)
  const { temperature, maxOutputTokens } = settings
  const explain = (error: unknown) => troubleOf(error, settings, clock.now())
  return {
    settings,
    common: {
      model,
      providerOptions: options,
      maxRetries: 0,
      ...(temperature === undefined ? {} : { temperature }),
      ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    },
    attempt: (once) => attempt({ settings, clock, signal: call.signal, explain }, once),
    spent(usage) {
      const spending = spendingOf(settings.model, usage)
      call.spent?.(spending)
      return spending
    },
  }
}
