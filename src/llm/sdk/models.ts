import type { z } from 'zod'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { ModelFailure, ModelSettings, Models, ObjectCall, Spending, StreamCall } from '../llm.ts'
import type { ModelConnection } from './connection.ts'

interface ModelsOptions {
  /** Current settings by name: a reload may change them. */
  settings(): Readonly<Record<string, ModelSettings>>
  readonly clock: Clock
  readonly log: Log
  /** Holds the keys, which are read for each call and never stored. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

/** Models over the AI SDK, which is large and therefore loaded at the first call. */
export function createModels(options: ModelsOptions): Models {
  const { clock, log } = options
  const env = options.env ?? process.env
  const find = (name: string): ModelSettings | undefined => {
    const all = options.settings()
    return Object.hasOwn(all, name) ? all[name] : undefined
  }

  async function onConnection<T>(
    call: { model: string; signal?: AbortSignal; spent?(spending: Spending): void },
    purpose: string,
    talk: (connection: ModelConnection) => Promise<T | ModelFailure>,
  ): Promise<T | ModelFailure> {
    const settings = find(call.model)
    if (settings === undefined) return unknownModel(call.model, Object.keys(options.settings()))
    const key = settings.keyEnv === undefined ? undefined : env[settings.keyEnv]?.trim()
    if (settings.keyEnv !== undefined && !key) return missingKey(call.model, settings.keyEnv)
    const { openModelConnection } = await import('./connection.ts')
    const startedAt = clock.now()
    const connection = await openModelConnection(settings, key, clock, call)
    const answer = await talk(connection)
    const noted = { model: call.model, purpose, ms: clock.now() - startedAt }
    if (!isFailure(answer)) {
      log.debug(noted, 'a model answered')
      return answer
    }
    const shown = key === undefined ? answer : { ...answer, message: answer.message.replaceAll(key, '***') }
    if (shown.code !== 'aborted')
      log.warn({ ...noted, code: shown.code, reason: shown.message }, 'a model failed')
    return shown
  }

  return {
    about: find,
    generateObject<Schema extends z.ZodType>(call: ObjectCall<Schema>) {
      return onConnection(call, call.purpose, async (connection) => {
        const { generateObject } = await import('./object.ts')
        return await generateObject(connection, call)
      })
    },
    stream(call: StreamCall) {
      return onConnection(call, 'agent', async (connection) => {
        const { stream } = await import('./stream.ts')
        return await stream(connection, call)
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
      : `The models are ${known.join(', ')}. Use one of these, or add it under "models" in orc.yaml.`
  return { ok: false, code: 'unknown_model', message: `There is no model "${name}"`, hint }
}

function missingKey(name: string, variable: string): ModelFailure {
  return {
    ok: false,
    code: 'no_key',
    message: `The model "${name}" needs a key, but ${variable} is not set`,
    hint: `Set ${variable} in the environment of the service, then restart it.`,
  }
}
