import { resolve } from 'node:path'
import type { Path, Report } from '../document/problem.ts'
import type { Env } from './state-folder.ts'

export type StoreConfig =
  | { readonly engine: 'sqlite'; readonly file: string; readonly shown: string }
  | {
      readonly engine: 'postgres'
      /** With its password: for the driver only. */
      readonly url: string
      /** Without it: for people and logs. */
      readonly shown: string
      /** The environment variables that it was put together from: nobody else's business. */
      readonly variables: readonly string[]
    }

interface Surroundings {
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
  { folder, stateFolder, env }: Surroundings,
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
    report(PATH, 'is neither a SQLite nor a PostgreSQL address', FORMS)
    return byDefault
  }
  if (!URL.canParse(url)) {
    report(PATH, 'is not a valid address', FORMS)
    return byDefault
  }
  if (hasLiteralPassword(written)) {
    warn(PATH, 'holds a password', `Put it into the environment and write \${NAME} in its place.`)
  }
  const variables = [...written.matchAll(VARIABLE)].map(([, name]) => name!)
  return { engine: 'postgres', url, shown: withoutSecrets(url), variables }
}

function sqlite(file: string): StoreConfig {
  return { engine: 'sqlite', file, shown: `sqlite:${file}` }
}

const VARIABLE = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g

/** Values before the `@` are user and password as they are, so they are escaped for their place in the URL. */
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
