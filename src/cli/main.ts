import { stateFolder } from '../config/state-folder.ts'
import { AppError } from '../model/errors.ts'
import { exitCode } from './exit-code.ts'
import { OutputClosed } from './output.ts'
import { findPlace } from './place.ts'
import { errorParts, reportError } from './report.ts'
import { speak } from './speak.ts'
import type { Verb } from './verb.ts'

/** Every verb that is not a command type. Loaded when it is used: a short command must start at once. */
const VERBS: Readonly<Record<string, () => Promise<{ verb: Verb }>>> = {
  serve: () => import('./commands/serve.ts'),
  demo: () => import('./commands/demo.ts'),
  status: () => import('./commands/status.ts'),
  messages: () => import('./commands/messages.ts'),
  message: () => import('./commands/message.ts'),
  inbox: () => import('./commands/inbox.ts'),
  approve: () => import('./commands/approve.ts'),
  reject: () => import('./commands/reject.ts'),
  answer: () => import('./commands/answer.ts'),
  audit: () => import('./commands/audit.ts'),
  'audit verify': () => import('./commands/audit-verify.ts'),
  'audit export': () => import('./commands/audit-export.ts'),
  rules: () => import('./commands/rules.ts'),
  'rules show': () => import('./commands/rules-show.ts'),
  'rules explain': () => import('./commands/rules-explain.ts'),
  'rules check': () => import('./commands/rules-check.ts'),
  token: () => import('./commands/token.ts'),
  'token list': () => import('./commands/token-list.ts'),
  'token revoke': () => import('./commands/token-revoke.ts'),
  prompt: () => import('./commands/prompt.ts'),
  scan: () => import('./commands/scan.ts'),
  doctor: () => import('./commands/doctor.ts'),
  completion: () => import('./commands/completion.ts'),
  help: () => import('./commands/help.ts'),
}

const locate = (config?: string) => findPlace(config, stateFolder)

async function run(argv: readonly string[]): Promise<number> {
  const [first = 'help', second] = argv
  const pair = `${first} ${second}`
  const [name, used] = Object.hasOwn(VERBS, pair) ? [pair, 2] : [first, 1]
  const load = Object.hasOwn(VERBS, name) ? VERBS[name] : SHORT[name]
  if (load === undefined) return await speak(first, argv.slice(1), locate)
  const [{ verb }, { runVerb }] = await Promise.all([load(), import('./run-verb.ts')])
  return await runVerb(verb, argv.slice(used), locate, allVerbs)
}

const SHORT: Readonly<Record<string, () => Promise<{ verb: Verb }>>> = {
  '--help': VERBS.help!,
  '-h': VERBS.help!,
  '--version': () => import('./commands/version.ts'),
  '-V': () => import('./commands/version.ts'),
}

async function allVerbs(): Promise<Verb[]> {
  const loaded = await Promise.all(Object.values(VERBS).map((load) => load()))
  return loaded.map(({ verb }) => verb)
}

/** Says what was probably meant, where a word is not known. */
async function suggest(error: AppError): Promise<AppError> {
  const { unknown, among, verbs, prefix = '' } = (error.data ?? {}) as Suggestion
  if (unknown === undefined) return error
  const { nearest } = await import('../config/suggestion.ts')
  const { BODIES } = await import('./bodies.ts')
  const built = verbs
    ? [...Object.keys(VERBS), ...Object.keys(BODIES).map((type) => type.replaceAll('_', '-'))]
    : []
  const meant = nearest(unknown, [...built, ...(among ?? [])])
  if (meant === undefined) return error
  return new AppError(error.code, error.message, {
    hint: `Did you mean ${prefix}${meant}? ${error.hint ?? ''}`.trim(),
  })
}

interface Suggestion {
  unknown?: string
  among?: readonly string[]
  verbs?: boolean
  prefix?: string
}

async function report(error: unknown, argv: readonly string[]): Promise<number> {
  if (error instanceof OutputClosed) return exitCode('ok')
  const end = argv.indexOf('--')
  const json = argv.slice(0, end === -1 ? undefined : end).includes('--json')
  if (error instanceof AppError) return reportError(errorParts(await suggest(error)), json)
  const { message, stack } = error instanceof Error ? error : new Error(String(error))
  const shown = process.env.ORC_DEBUG ? (stack ?? message) : message
  return reportError({ code: 'INTERNAL', message: shown, hint: 'With ORC_DEBUG=1 it says where.' }, json)
}

const argv = process.argv.slice(2)
try {
  process.exitCode = await run(argv)
} catch (error) {
  try {
    process.exitCode = await report(error, argv)
  } catch (closed) {
    if (!(closed instanceof OutputClosed)) throw closed
  }
}
