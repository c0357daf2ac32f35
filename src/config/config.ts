import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs'
import { AppError } from '../base/errors.ts'
import type { Result } from '../base/result.ts'
import {
  formatProblems,
  type Path,
  type Problem,
  problemAt,
  reportInto,
  sortProblems,
} from '../yaml/problem.ts'
import { checkShape, describeBy } from '../yaml/shape.ts'
import { MAX_BYTES, type ReadSource, readObject, readYaml, tooLarge, wholeFile } from '../yaml/yaml.ts'
import { type Config, resolveConfig } from './resolve.ts'
import { type ConfigInput, ConfigSchema, configJsonSchema, MINIMAL_EXAMPLE } from './schema.ts'
import type { Env } from './state-folder.ts'

export type { ProgramName } from '../base/agent.ts'
export { formatProblems, type Problem } from '../yaml/problem.ts'
export type { GithubConfig } from './github.ts'
export type { Limits, Price, Prices } from './limits.ts'
export type { AgentConfig, Config, ServiceConfig } from './resolve.ts'
export { type ConfigInput, configJsonSchema, type RuntimeName } from './schema.ts'
export { type Env, makeStateFolder, stateFolder } from './state-folder.ts'
export type { StoreConfig } from './store-url.ts'
export type { CheckConfig, TasksConfig } from './tasks.ts'
export type { WebhookConfig, WebhookFormat } from './webhooks.ts'

export interface ConfigOptions {
  /** The source file, which relative paths and the state folder are resolved against; default: the working folder. */
  readonly file?: string
  /** For ORC_HOME and the `${NAME}` in the store's URL. */
  readonly env?: Env
}

export type LoadedConfig = Result<
  {
    readonly config: Config
    readonly warnings: readonly Problem[]
    /** Reports a problem that others find in their part of the file, such as a runtime in its `with`. */
    problemAt(path: Path, message: string, hint: string): Problem
  },
  readonly Problem[]
>

/** Reads orc.yaml from text or bytes. Never throws because of the content. */
export function parseConfig(source: string | Uint8Array, options: ConfigOptions = {}): LoadedConfig {
  return finish(readYaml(source, { example: MINIMAL_EXAMPLE }), options)
}

/** Reads orc.yaml from disk. */
export function readConfig(file: string, env: Env = process.env): LoadedConfig {
  let descriptor: number | undefined
  try {
    descriptor = openSync(file, 'r')
    if (fstatSync(descriptor).size > MAX_BYTES) return { ok: false, error: [tooLarge(MAX_BYTES)] }
    return parseConfig(readFileSync(descriptor), { file, env })
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    const known = UNREADABLE[code]
    if (known === undefined) throw error
    return { ok: false, error: [wholeFile(...known)] }
  } finally {
    if (descriptor !== undefined) closeSync(descriptor)
  }
}

const UNREADABLE: Record<string, [message: string, hint: string]> = {
  ENOENT: ['The file does not exist', `Create it. A minimal example: ${MINIMAL_EXAMPLE}`],
  ENOTDIR: ['The file does not exist', 'A part of the path is not a folder.'],
  EISDIR: ['The path is a folder', 'Name the file inside it.'],
  EACCES: ['The file cannot be read: permission denied', 'Check its permissions and its owner.'],
  EPERM: ['The file cannot be read: permission denied', 'Check its permissions and its owner.'],
}

/** Checks a configuration object, for programs that embed Orchub. Throws CONFIG_INVALID with all problems. */
export function defineConfig(input: ConfigInput, options: ConfigOptions = {}): Config {
  const loaded = finish(readObject(input), options)
  if (loaded.ok) return loaded.value.config
  throw new AppError('CONFIG_INVALID', formatProblems(loaded.error), {
    hint: loaded.error[0]!.hint,
    data: { problems: loaded.error },
  })
}

function finish(read: ReadSource, { file, env = process.env }: ConfigOptions): LoadedConfig {
  if (!read.ok) return read
  const { value, locate } = read.value
  const problems: Problem[] = []
  const warnings: Problem[] = []
  const report = reportInto(problems, locate)
  const input = checkShape(ConfigSchema, hints, value, report)
  if (input === undefined) return { ok: false, error: sortProblems(problems) }
  const config = resolveConfig(input, { file, env, locate, report, warn: reportInto(warnings, locate) })
  if (problems.length > 0) return { ok: false, error: sortProblems(problems) }
  return {
    ok: true,
    value: {
      config: deepFreeze(config),
      warnings: sortProblems(warnings),
      problemAt: (path, message, hint) => problemAt(locate, path, message, hint),
    },
  }
}

const KINDS_OF_NAMES: Record<string, string> = {
  models: 'name for a model',
  people: 'name for a person',
  webhooks: 'name for a webhook',
}

const hints = {
  ...describeBy(configJsonSchema, MINIMAL_EXAMPLE),
  hintForKey,
  kindOfName: (path: Path) => KINDS_OF_NAMES[String(path[0])],
}

/** Specific hints for unknown keys that people commonly try. */
function hintForKey(key: string, parent: Path): string | undefined {
  if (parent.length === 1 && parent[0] === 'permissions' && key === '*') {
    return 'Permissions here already apply to all agents; for one agent, use agents.NAME.permissions.'
  }
  if (parent[0] === 'models' && /key|token|secret|password/i.test(key)) {
    return 'Never put keys into this file: use an environment variable and name it in "key_env".'
  }
  if (parent[0] === 'webhooks' && /secret|token|key/i.test(key)) {
    return 'Never put secrets into this file: use an environment variable and name it in "secret_env".'
  }
  return undefined
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  for (const inner of Object.values(value)) deepFreeze(inner)
  return Object.freeze(value)
}
