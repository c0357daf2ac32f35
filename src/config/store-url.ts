import { resolve } from 'node:path'
import type { Path, Report } from '../yaml/problem.ts'
import type { Env } from './state-folder.ts'

export type StoreConfig =
  | { readonly engine: 'sqlite'; readonly file: string; readonly shown: string }
  | {
      readonly engine: 'postgres'
      /** With the password, for the driver only. */
      readonly url: string
      /** Without the password, for people and logs. */
      readonly shown: string
      /** Environment variables used in the URL; agents and checks must not get them. */
      readonly variables: readonly string[]
    }

interface StoreContext {
  /** The folder of orc.yaml. */
  readonly folder: string
  readonly stateFolder: string
  readonly env: Env
}

const PATH: Path = ['store', 'url']
const FORMS = `Write "sqlite:FILE" or "postgres://USER:\${PASSWORD}@HOST/DATABASE".`

/** Never puts the URL into a message: it may hold a password. */
export function resolveStore(
  written: string | undefined,
  { folder, stateFolder, env }: StoreContext,
  report: Report,
  warn: Report,
): StoreConfig {
  const byDefault = sqlite(resolve(stateFolder, 'orc.db'))
  if (written === undefined) return byDefault
  const url = insertVariables(written, env, report)
  if (url === undefined) return byDefault
  if (url.startsWith('sqlite:')) {
    const file = url.slice('sqlite:'.length).replace(/^\/\//, '')
    if (file !== '' && file !== ':memory:') return sqlite(resolve(folder, file))
    report(
      PATH,
      file === '' ? 'names no file' : 'cannot be kept in memory only',
      'Write "sqlite:FILE", relative to orc.yaml.',
    )
    return byDefault
  }
  if (!/^postgres(?:ql)?:\/\//.test(url)) {
    report(PATH, 'must be a SQLite or PostgreSQL URL', FORMS)
    return byDefault
  }
  if (!URL.canParse(url)) {
    report(PATH, 'is not a valid URL', FORMS)
    return byDefault
  }
  if (hasLiteralPassword(written)) {
    warn(
      PATH,
      'holds a password',
      `Put the password into an environment variable and write \${NAME} instead.`,
    )
  }
  const variables = [...written.matchAll(VARIABLE)].map(([, name]) => name!)
  return { engine: 'postgres', url, shown: withoutSecrets(url), variables }
}

function sqlite(file: string): StoreConfig {
  return { engine: 'sqlite', file, shown: `sqlite:${file}` }
}

const VARIABLE = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g

/** Escapes values before the `@`, which are a plain user name and password. */
function insertVariables(written: string, env: Env, report: Report): string | undefined {
  const scheme = /^postgres(?:ql)?:\/\//.exec(written)?.[0].length ?? written.length
  const credentialsEnd = written.lastIndexOf('@')
  let complete = true
  const url = written.replace(VARIABLE, (_, name: string, offset: number) => {
    const value = env[name]
    if (value === undefined || value === '') {
      complete = false
      report(
        PATH,
        `needs the environment variable ${name}, which is not set`,
        `Set ${name} before you start the service.`,
      )
      return ''
    }
    return offset >= scheme && offset < credentialsEnd ? encodeURIComponent(value) : value
  })
  return complete ? url : undefined
}

function hasLiteralPassword(written: string): boolean {
  const bare = written.replace(VARIABLE, '')
  return /^\w+:\/\/[^@/]*:[^@]+@/.test(bare) || /[?&]password=[^&]/.test(bare)
}

function withoutSecrets(url: string): string {
  const shown = new URL(url)
  shown.password = ''
  shown.search = ''
  shown.hash = ''
  return shown.href
}
