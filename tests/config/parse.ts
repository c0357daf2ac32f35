import { type Config, type ConfigOptions, type Problem, parseConfig } from '../../src/config/config.ts'

const TEAM: ConfigOptions = { file: '/team/orc.yaml', env: {} }

/** The configuration in a text and its warnings; throws if it has mistakes. */
export function read(yaml: string, options = TEAM): { config: Config; warnings: readonly Problem[] } {
  const loaded = parseConfig(yaml, options)
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.error))
  return loaded.value
}

export function problemsOf(source: string | Uint8Array): readonly Problem[] {
  const loaded = parseConfig(source, TEAM)
  return loaded.ok ? [] : loaded.error
}

/** Each problem as `path: message`. */
export function mistakesIn(yaml: string): string[] {
  return problemsOf(yaml).map(({ path, message }) => `${path}: ${message}`)
}
