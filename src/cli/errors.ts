import { existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { AppError, type ErrorCode } from '../base/errors.ts'
import type { ErrorReceipt, Receipt } from '../protocol/receipt.ts'
import { complain, OutputClosed, paint, plain, printJson } from './output/print.ts'

/** An error before the command reaches the service, with a hint on what to do. */
function localError(code: ErrorCode, message: string, hint: string, cause?: unknown): AppError {
  return new AppError(code, message, { hint, ...(cause === undefined ? {} : { cause }) })
}

/** A mistake on the command line. For a misspelled word, the report suggests the nearest candidate. */
export function usage(message: string, hint: string, unknown?: UnknownWord): AppError {
  return new AppError('USAGE', message, { hint, ...(unknown === undefined ? {} : { data: { unknown } }) })
}

/** The error for every command that needs a team, whether it asks the service or reads the file. */
export function noTeam(configFile: string | undefined): AppError {
  return localError(
    'NOT_FOUND',
    configFile === undefined
      ? 'There is no orc.yaml here or in a folder above'
      : `${configFile}: no such file`,
    `orc init${configFile === undefined ? '' : ` ${dirname(configFile)}`} writes one, or name yours with --config FILE or ORC_CONFIG. A minimal one: agents: { Master: {}, Worker: { parent: Master } }`,
  )
}

export function notRunning(configFile: string | undefined, stateFolder: string | undefined): AppError {
  const isMissing = configFile === undefined ? stateFolder === undefined : !existsSync(configFile)
  if (isMissing) return noTeam(configFile)
  return localError('SERVICE_UNREACHABLE', 'The service is not running', `Start it: ${upCommand(configFile)}`)
}

export function hasEnded(configFile: string | undefined, pid: number): AppError {
  return localError(
    'SERVICE_UNREACHABLE',
    `The service is not running: process ${pid} has ended`,
    `Start it: ${upCommand(configFile)}. If it runs in a container or under another process namespace, set ORC_URL.`,
  )
}

function upCommand(configFile: string | undefined): string {
  const isHere = configFile === undefined || dirname(configFile) === process.cwd()
  return isHere ? 'orc up' : `orc up --config ${configFile}`
}

export function unreachable(address: string, cause: NodeJS.ErrnoException): AppError {
  const neverArrived = /ECONNREFUSED|ENOENT|ENOTFOUND|EACCES/.test(cause.code ?? '')
  return localError(
    'SERVICE_UNREACHABLE',
    `The service at ${address} does not answer: ${cause.message || cause.code}`,
    neverArrived
      ? 'Start it: orc up. `orc service doctor` shows what is wrong.'
      : 'The command may or may not have been carried out; check with `orc message list` or `orc audit --since 1m`.',
    cause,
  )
}

export function notOrchub(address: string): AppError {
  return localError(
    'SERVICE_UNREACHABLE',
    `The server at ${address} is not Orchub`,
    'Check that ORC_URL points to an Orchub service.',
  )
}

export function noAddress(address: string): AppError {
  return usage(
    `"${address}" is not a service address`,
    'Set ORC_URL to an address such as http://127.0.0.1:7420 or unix:/path/to/socket.',
  )
}

export function noToken(file: string | undefined, cause: unknown): AppError {
  const code = (cause as NodeJS.ErrnoException).code
  if (file === undefined || code === 'ENOENT') {
    const reason = file === undefined ? 'no state folder is known' : `there is no ${file}`
    return localError(
      'UNAUTHENTICATED',
      `No token found: ORC_TOKEN is not set, and ${reason}`,
      "The service creates the operator's token when it starts: orc up. For an agent's token: orc token create AGENT",
    )
  }
  if (code !== undefined) {
    const hint = 'Only the user who runs the service is the operator. Agents set ORC_TOKEN.'
    return localError('FORBIDDEN', `The operator's token cannot be read: ${file} (${code})`, hint, cause)
  }
  const mode = (statSync(file).mode & 0o777).toString(8)
  return localError(
    'FORBIDDEN',
    `Others can read the operator's token: ${file} has mode 0${mode}`,
    `Run: chmod 600 ${file}. If others may have read it, delete it, restart the service, and revoke the old token (orc token list).`,
  )
}

export function badToken(file: string | undefined): AppError {
  return file === undefined
    ? localError(
        'UNAUTHENTICATED',
        'ORC_TOKEN does not hold a token',
        'Set it to the output of: orc token create AGENT; or unset it.',
      )
    : localError('UNAUTHENTICATED', `${file} does not hold a token`, 'Delete it and start the service again.')
}

export function tokenInArguments(): AppError {
  return usage(
    'Tokens are not accepted on the command line, where other users can see them',
    "Set ORC_TOKEN in the agent's environment; the operator's token is read from the state folder.",
  )
}

export function takesNoValue(name: string): AppError {
  return usage(`--${name} takes no value`, `Write --${name} alone.`)
}

export function needsValue(name: string, value: string): AppError {
  return usage(
    `--${name} needs a value`,
    `Example: --${name} ${value}. If the value begins with dashes: --${name}=--${value}`,
  )
}

/** An error rather than a warning: a typo must not send a command with a field missing. */
export function noSuchOption(verb: string, typed: string, known: readonly string[]): AppError {
  const option = typed.replace(/=.*/s, '')
  const word = option.replace(/^-+/, '')
  return usage(`orc ${verb} has no option ${option}`, seeHelp(verb), { word, among: known, prefix: '--' })
}

/** Suggests the nearest of all verbs and of `among`. */
export function noSuchCommand(name: string, hint: string, among: readonly string[] = []): AppError {
  return usage(`There is no command "${name}"`, hint, { word: name, among, verbs: true })
}

export function checkIdempotencyKey(key: string): void {
  // The key becomes an HTTP header, and a line end in it would start another header.
  if (/^[!-~]{1,200}$/.test(key)) return
  throw usage(
    'The idempotency key is not valid',
    'Use at most 200 printable ASCII characters without spaces.',
  )
}

export function noJson(verb: string, instead: string): AppError {
  return usage(`orc ${verb} has no JSON output`, instead)
}

export function seeHelp(verb: string): string {
  return `orc ${verb} --help shows its options.`
}

/** A field as people type it: `in_reply_to` is --in-reply-to. */
export function dashed(field: string): string {
  return field.replaceAll('_', '-')
}

/** The exit codes of every command; `orc help` and docs/cli.md show this table. */
export const EXIT_CODES = {
  ok: [0, 'done'],
  error: [1, 'an error in the service or a file, or a check that failed'],
  usage: [2, 'the command line or the command was not understood'],
  blocked: [3, 'a rule forbids it'],
  held: [4, 'held until a person approves or rejects it'],
  unreachable: [5, 'the service is not running or does not answer'],
  rateLimited: [6, 'too many commands; the message says when to try again'],
  notFound: [7, 'no such agent, recipient, message, request or file'],
  refused: [8, 'the token is missing, invalid, or not permitted to do this'],
  taskFailed: [9, 'the run failed, or the task failed, was cancelled or was skipped'],
  runPartial: [10, 'the run ended, but some of its agents were skipped'],
  runCancelled: [11, 'the run was cancelled'],
  interrupted: [130, 'stopped with Ctrl-C'],
} as const satisfies Record<string, readonly [code: number, meaning: string]>

type Exit = keyof typeof EXIT_CODES

export function exitCode(exit: Exit): number {
  return EXIT_CODES[exit][0]
}

const EXIT_BY_CODE: Record<ErrorCode, Exit> = {
  UNAUTHENTICATED: 'refused',
  FORBIDDEN: 'refused',
  FORBIDDEN_HOST: 'refused',
  SENDER_MISMATCH: 'refused',
  UNKNOWN_COMMAND: 'usage',
  INVALID_COMMAND: 'usage',
  INVALID_REQUEST: 'usage',
  UNKNOWN_AGENT: 'notFound',
  UNKNOWN_RECIPIENT: 'notFound',
  NOT_FOUND: 'notFound',
  METHOD_NOT_ALLOWED: 'error',
  TOO_LARGE: 'usage',
  RATE_LIMITED: 'rateLimited',
  IDEMPOTENCY_CONFLICT: 'error',
  CONFLICT: 'error',
  HALTED: 'error',
  RUNTIME_FAILED: 'error',
  RUNTIME_MISSING: 'error',
  PROGRAM_MISSING: 'error',
  PROGRAM_FAILED: 'error',
  NOT_EXTRACTED: 'error',
  CONFIG_INVALID: 'error',
  PLAN_INVALID: 'error',
  STORE_LOCKED: 'error',
  STORE_NEWER: 'error',
  STORE_FULL: 'error',
  STORE_CORRUPT: 'error',
  STORE_UNAVAILABLE: 'error',
  FENCED: 'error',
  SERVICE_UNREACHABLE: 'unreachable',
  SERVICE_STOPPING: 'unreachable',
  USAGE: 'usage',
  INTERNAL: 'error',
}

/** A newer service may know codes that this program does not. */
function exitOfError(code: string): Exit {
  return EXIT_BY_CODE[code as ErrorCode] ?? 'error'
}

export function exitOfReceipt(receipt: Receipt): Exit {
  switch (receipt.status) {
    case 'delivered':
    case 'ok':
      return 'ok'
    case 'blocked':
    case 'held':
      return receipt.status
    case 'error':
      return exitOfError(receipt.code)
  }
}

/** Prints what happened, the code and the hint to standard error; with --json to standard output. Returns the exit code. */
export function reportError(error: Omit<ErrorReceipt, 'status'>, json: boolean): number {
  const { code, message } = error
  const hint = code === 'UNAUTHENTICATED' ? tokenHint(error.hint) : error.hint
  if (json) printJson({ status: 'error', ...error, ...(hint === undefined ? {} : { hint }) })
  else {
    const [first, ...rest] = plain(message).split('\n')
    complain([`${paint('red', 'orc:', 'err')} ${first} (${code})`, ...rest].join('\n'))
    if (hint !== undefined) complain(`${paint('dim', 'hint:', 'err')} ${plain(hint)}`)
  }
  return exitCode(exitOfError(code))
}

/** The service's hint speaks of the Authorization header; on the command line the token comes from a file or ORC_TOKEN. */
function tokenHint(hint: string | undefined): string | undefined {
  if (!hint?.includes('Authorization')) return hint
  return process.env.ORC_TOKEN === undefined
    ? "The operator's token in the state folder belongs to another service: check ORC_URL and ORC_HOME, or restart the service."
    : 'ORC_TOKEN was revoked or belongs to another service. Create a new one with `orc token create AGENT`, or unset it to act as the operator.'
}

/** An unknown word and its candidates, for the suggestion in the error. */
interface UnknownWord {
  word: string
  among: readonly string[]
  /** The names of all verbs are candidates too. */
  verbs?: true
  prefix?: string
}

type Suggest = (unknown: UnknownWord) => string | undefined

/** Handles every error that main.ts catches; returns the exit code. */
export function reportThrown(error: unknown, argv: readonly string[], suggest: Suggest): number {
  try {
    if (error instanceof OutputClosed) return exitCode('ok')
    return reportError(toErrorReceipt(error, suggest), wantsJson(argv))
  } catch (again) {
    if (again instanceof OutputClosed) return exitCode('error')
    throw again
  }
}

function toErrorReceipt(error: unknown, suggest: Suggest): Omit<ErrorReceipt, 'status'> {
  if (!(error instanceof AppError)) return fileError(error as NodeJS.ErrnoException) ?? internalError(error)
  const { code, message } = error
  const hint = [suggestion(error.data?.unknown as UnknownWord | undefined, suggest), error.hint]
    .filter(Boolean)
    .join(' ')
  return { code, message, ...(hint === '' ? {} : { hint }) }
}

/** System errors about a file that the user named. */
const FILE_ERRORS: Readonly<Record<string, readonly [code: ErrorCode, message: string, hint: string]>> = {
  ENOENT: ['NOT_FOUND', 'no such file or folder', 'Check its name.'],
  ENOTDIR: ['NOT_FOUND', 'no such file or folder', 'A part of the path is not a folder.'],
  EISDIR: ['USAGE', 'this is a folder', 'Name a file inside it.'],
  EEXIST: ['CONFLICT', 'already exists', 'Remove it, or choose another name.'],
  EACCES: ['FORBIDDEN', 'permission denied', 'Check its permissions and its owner.'],
  EPERM: ['FORBIDDEN', 'permission denied', 'Check its permissions and its owner.'],
  EROFS: ['CONFLICT', 'the file system is read-only', 'Choose a writable folder.'],
  ENOSPC: ['STORE_FULL', 'the disk is full', 'Free some space and try again.'],
}

function fileError({ code = '', path }: NodeJS.ErrnoException): Omit<ErrorReceipt, 'status'> | undefined {
  const known = FILE_ERRORS[code]
  if (known === undefined) return undefined
  const [ours, text, hint] = known
  return { code: ours, message: path === undefined ? text : `${path}: ${text}`, hint }
}

function internalError(error: unknown): Omit<ErrorReceipt, 'status'> {
  const { message, stack } = error instanceof Error ? error : new Error(String(error))
  const text = process.env.ORC_DEBUG ? (stack ?? message) : message
  return { code: 'INTERNAL', message: text, hint: 'Set ORC_DEBUG=1 to see a stack trace.' }
}

function suggestion(unknown: UnknownWord | undefined, suggest: Suggest): string | undefined {
  if (unknown === undefined) return undefined
  const word = suggest(unknown)
  return word === undefined ? undefined : `Did you mean ${unknown.prefix ?? ''}${word}?`
}

function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf('--')
  return argv.slice(0, end === -1 ? undefined : end).includes('--json')
}
