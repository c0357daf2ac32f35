import type { z } from 'zod'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { ModelFailure, Models, ObjectCall, Spending, StreamCall } from '../llm.ts'
import type { ModelSettings } from '../model-settings.ts'
import type { Line } from './line.ts'

interface ModelsOptions {
  /** By name, as they are in force now: a reload may change them. */
  settings(): Readonly<Record<string, ModelSettings>>
  readonly clock: Clock
  readonly log: Log
  /** Where the keys are. Read with each call, and kept nowhere. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

/** Models over the AI SDK. It is large, so that it is loaded with the first call. */
export function createModels(options: ModelsOptions): Models {
  const { clock, log } = options
  const env = options.env ?? process.env
  const find = (name: string): ModelSettings | undefined => {
    const all = options.settings()
    return Object.hasOwn(all, name) ? all[name] : undefined
  }

  async function onLine<T>(
    call: { model: string; signal?: AbortSignal; spent?(spending: Spending): void },
    purpose: string,
    talk: (line: Line) => Promise<T | ModelFailure>,
  ): Promise<T | ModelFailure> {
    const settings = find(call.model)
    if (settings === undefined) return unknownModel(call.model, Object.keys(options.settings()))
    const key = settings.keyEnv === undefined ? undefined : env[settings.keyEnv]?.trim()
    if (settings.keyEnv !== undefined && !key) return missingKey(call.model, settings.keyEnv)
    const { openLine } = await import('./open-line.ts')
    const startedAt = clock.now()
    const line = await openLine(settings, key, clock, call)
    const answer = await talk(line)
    const noted = { model: call.model, purpose, ms: clock.now() - startedAt }
    if (!isFailure(answer)) {
      log.debug(noted, 'a model answered')
      return answer
    }
    const told = key === undefined ? answer : { ...answer, message: answer.message.replaceAll(key, '***') }
    if (told.code !== 'aborted')
      log.warn({ ...noted, code: told.code, reason: told.message }, 'a model failed')
    return told
  }

  return {
    about: find,
    generateObject<Schema extends z.ZodType>(call: ObjectCall<Schema>) {
      return onLine(call, call.purpose, async (line) => {
        const { generateObject } = await import('./object.ts')
        return await generateObject(line, call)
      })
    },
    stream(call: StreamCall) {
      return onLine(call, 'agent', async (line) => {
        const { stream } = await import('./stream.ts')
        return await stream(line, call)
      })
    },
  }
}

function isFailure(answer: unknown): answer is ModelFailure {
  return (answer as { ok: boolean }).ok === false
}

function unknownModel(name: string, known: readonly string[]): ModelFailure {
  const hint =
    known.length === 0
      ? 'Add it under "models" in orc.yaml.'
      : `The models are ${known.join(', ')}. Add it under "models" in orc.yaml, or name one of these.`
  return { ok: false, code: 'unknown_model', message: `There is no model "${name}"`, hint }
}

function missingKey(name: string, variable: string): ModelFailure {
  return {
    ok: false,
    code: 'no_key',
    message: `The model "${name}" needs a key, and ${variable} is not set`,
    hint: `Set ${variable} in the environment of the service, and start it again.`,
  }
}
