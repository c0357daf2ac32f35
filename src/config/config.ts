import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs'
import { AppError } from '../base/errors.ts'
import { copyPlain } from '../yaml/plain.ts'
import {
  formatProblems,
  type Locate,
  type Path,
  type Problem,
  problemAt,
  reportInto,
} from '../yaml/problem.ts'
import { decodeUtf8 } from '../yaml/utf8.ts'
import { MAX_BYTES, readYaml } from '../yaml/yaml.ts'
import { type Config, resolveConfig } from './resolve.ts'
import { type ConfigInput, SMALLEST } from './schema.ts'
import { checkShape } from './shape.ts'
import type { Env } from './state-folder.ts'

export type { ProgramName } from '../base/program-names.ts'
export { formatProblems, type Problem } from '../yaml/problem.ts'
export type { GithubConfig } from './github.ts'
export type { Limits } from './limits.ts'
export type { ServiceConfig } from './listener.ts'
export type { Price, Prices } from './prices.ts'
export type { AgentConfig, Config } from './resolve.ts'
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

export type LoadedConfig =
  | {
      readonly ok: true
      readonly config: Config
      readonly warnings: readonly Problem[]
      /** Lets others check their own part, such as a runtime its `with`. */
      problemAt(path: Path, message: string, hint: string): Problem
    }
  | { readonly ok: false; readonly problems: readonly Problem[] }

/** Reads orc.yaml from text or bytes. Never throws because of the content. */
export function parseConfig(source: string | Uint8Array, options: ConfigOptions = {}): LoadedConfig {
  if (source.length > MAX_BYTES) return refuse('The file is too large', `At most ${MAX_BYTES / 1024} KiB.`)
  const decoded = decodeUtf8(source)
  if (!decoded.ok) return { ok: false, problems: [decoded.error] }
  const { value, locate, problems } = readYaml(decoded.value)
  if (problems.length > 0) return { ok: false, problems: sorted(problems) }
  if (value === null) return refuse('The file is empty', `A minimal example: ${SMALLEST}`)
  return finish(value, locate, options)
}

/** Reads orc.yaml from disk. */
export function readConfig(file: string, env: Env = process.env): LoadedConfig {
  let descriptor: number | undefined
  try {
    descriptor = openSync(file, 'r')
    const { size } = fstatSync(descriptor)
    if (size > MAX_BYTES) return refuse('The file is too large', `At most ${MAX_BYTES / 1024} KiB.`)
    return parseConfig(readFileSync(descriptor), { file, env })
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    const known = UNREADABLE[code]
    if (known === undefined) throw error
    return refuse(...known)
  } finally {
    if (descriptor !== undefined) closeSync(descriptor)
  }
}

const UNREADABLE: Record<string, [message: string, hint: string]> = {
  ENOENT: ['The file does not exist', `Create it. A minimal example: ${SMALLEST}`],
  ENOTDIR: ['The file does not exist', 'A part of the path is not a folder.'],
  EISDIR: ['The path is a folder', 'Name the file inside it.'],
  EACCES: ['The file cannot be read: permission denied', 'Check its permissions and its owner.'],
  EPERM: ['The file cannot be read: permission denied', 'Check its permissions and its owner.'],
}

/** Checks a configuration object, for programs that embed Orchub. Throws CONFIG_INVALID with all problems. */
export function defineConfig(input: ConfigInput, options: ConfigOptions = {}): Config {
  const problems: Problem[] = []
  const locate: Locate = () => ({ line: 0, column: 0 })
  const value = copyPlain(input, reportInto(problems, locate))
  const result = problems.length > 0 ? { ok: false as const, problems } : finish(value, locate, options)
  if (result.ok) return result.config
  throw new AppError('CONFIG_INVALID', formatProblems(result.problems), {
    hint: result.problems[0]!.hint,
    data: { problems: result.problems },
  })
}

function finish(value: unknown, locate: Locate, { file, env = process.env }: ConfigOptions): LoadedConfig {
  const problems: Problem[] = []
  const warnings: Problem[] = []
  const report = reportInto(problems, locate)
  const input = checkShape(value, report)
  if (input === undefined) return { ok: false, problems: sorted(problems) }
  const config = resolveConfig(input, { file, env, locate, report, warn: reportInto(warnings, locate) })
  if (problems.length > 0) return { ok: false, problems: sorted(problems) }
  return {
    ok: true,
    config: deepFreeze(config),
    warnings: sorted(warnings),
    problemAt: (path, message, hint) => problemAt(locate, path, message, hint),
  }
}

function refuse(message: string, hint: string): LoadedConfig {
  return { ok: false, problems: [{ line: 1, column: 1, path: '', message, hint }] }
}

function sorted(problems: readonly Problem[]): Problem[] {
  return problems.toSorted((a, b) => a.line - b.line || a.column - b.column)
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  for (const inner of Object.values(value)) deepFreeze(inner)
  return Object.freeze(value)
}
