import { z } from 'zod'
import { parseDuration } from '../base/durations.ts'
import { didYouMean } from '../base/suggestion.ts'
import { type ModelSettings, PROVIDERS, type Provider } from '../llm/llm.ts'
import type { Report } from '../yaml/problem.ts'
import { duration, envVariable, httpUrl } from './fields.ts'
import { leadsToLoopback } from './loopback.ts'

const DEFAULTS = { timeoutMs: 120_000, retries: 2 } as const

const KEYS: Record<Provider, string | undefined> = {
  anthropic: 'ANTHROPIC_API_KEY',
  openai: 'OPENAI_API_KEY',
  google: 'GEMINI_API_KEY',
  // Most of these run locally and need no key.
  'openai-compatible': undefined,
}

export const ModelSchema = z
  .strictObject({
    provider: z
      .enum(PROVIDERS)
      .describe('The provider: anthropic, openai, google, or openai-compatible with a base_url.'),
    model: z.string().min(1).max(200).describe("The provider's name for the model."),
    base_url: httpUrl
      .optional()
      .describe(
        'URL of the API, such as http://localhost:11434/v1 for Ollama. Required for openai-compatible.',
      ),
    key_env: envVariable
      .optional()
      .describe(
        `Environment variable that holds the key; never put the key into this file. Default: ${KEYS.anthropic}, ${KEYS.openai} or ${KEYS.google}; none for openai-compatible.`,
      ),
    timeout: duration
      .optional()
      .describe('How long to wait for an answer or its next chunk, such as 90s. Default: 2m.'),
    retries: z
      .int()
      .min(0)
      .max(10)
      .optional()
      .describe(`Number of retries after a transient failure. Default: ${DEFAULTS.retries}.`),
    max_output_tokens: z
      .int()
      .min(1)
      .max(10_000_000)
      .optional()
      .describe("Maximum length of one answer. Default: the provider's."),
    temperature: z
      .number()
      .min(0)
      .max(2)
      .optional()
      .describe("Sampling temperature. Default: the provider's."),
    context_window: z
      .int()
      .min(1000)
      .max(100_000_000)
      .optional()
      .describe(
        'Size of the context window in tokens. If set, agents are warned when it fills up and old history is dropped in time.',
      ),
  })
  .describe('One model: { provider: anthropic, model: NAME }.')

type ModelInput = z.input<typeof ModelSchema>

export function resolveModels(
  written: Readonly<Record<string, ModelInput>>,
  report: Report,
  warn: Report,
): Readonly<Record<string, ModelSettings>> {
  return Object.fromEntries(
    Object.entries(written).map(([name, model]) => {
      checkAddress(model, ['models', name], report, warn)
      return [name, resolveModel(model)]
    }),
  )
}

function resolveModel(written: ModelInput): ModelSettings {
  const keyEnv = written.key_env ?? KEYS[written.provider]
  return {
    provider: written.provider,
    model: written.model,
    ...(written.base_url !== undefined && { baseUrl: written.base_url.replace(/\/+$/, '') }),
    ...(keyEnv !== undefined && { keyEnv }),
    timeoutMs: written.timeout === undefined ? DEFAULTS.timeoutMs : parseDuration(written.timeout),
    retries: written.retries ?? DEFAULTS.retries,
    ...(written.max_output_tokens !== undefined && { maxOutputTokens: written.max_output_tokens }),
    ...(written.temperature !== undefined && { temperature: written.temperature }),
    ...(written.context_window !== undefined && { contextWindow: written.context_window }),
  }
}

function checkAddress(written: ModelInput, path: readonly string[], report: Report, warn: Report) {
  if (written.base_url === undefined) {
    if (written.provider === 'openai-compatible') {
      report(
        path,
        'An openai-compatible model needs a "base_url"',
        'Add "base_url: http://localhost:11434/v1".',
      )
    }
    return
  }
  const at = [...path, 'base_url']
  const url = URL.parse(written.base_url)
  if (url === null) {
    report(at, '"base_url" is not a valid URL', 'For example http://localhost:11434/v1.')
  } else if (url.username !== '' || url.password !== '' || url.search !== '') {
    report(
      at,
      '"base_url" must not have a password or a query',
      'Put the key into an environment variable and name it in "key_env".',
    )
  } else if (url.protocol === 'http:' && !leadsToLoopback(url) && written.key_env !== undefined) {
    warn(at, 'The key is sent to this URL unencrypted', 'Use https.')
  }
}

interface LlmAgent {
  readonly runtime?: string | undefined
  readonly with?: Readonly<Record<string, unknown>> | null | undefined
}

/** Checks that the model of each llm agent exists under `models`. */
export function checkModelsOfAgents(
  agents: Readonly<Record<string, LlmAgent | null>>,
  models: Readonly<Record<string, ModelSettings>>,
  report: Report,
) {
  const known = Object.keys(models)
  for (const [name, agent] of Object.entries(agents)) {
    const wanted = agent?.runtime === 'llm' ? agent.with?.model : undefined
    if (typeof wanted !== 'string' || Object.hasOwn(models, wanted)) continue
    const otherwise = known.length === 0 ? 'Add it under "models".' : `The models are ${known.join(', ')}.`
    report(
      ['agents', name, 'with', 'model'],
      `There is no model "${wanted.slice(0, 64)}"`,
      didYouMean(wanted, known, otherwise),
    )
  }
}
