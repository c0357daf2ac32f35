import { existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { AppError, type ErrorCode } from '../base/errors.ts'
import type { TeamLocation } from './connection/team-location.ts'
import type { Unknown } from './print-error.ts'

/** Errors that occur before a command reaches the service, each with a hint on what to do. */
function fault(code: ErrorCode, message: string, hint: string, cause?: unknown): AppError {
  return new AppError(code, message, { hint, ...(cause === undefined ? {} : { cause }) })
}

export function usage(message: string, hint: string): AppError {
  return fault('USAGE', message, hint)
}

/** The error for every command that needs a team, whether it asks the service or reads the file. */
export function noTeam(configFile: string | undefined): AppError {
  return fault(
    'NOT_FOUND',
    configFile === undefined
      ? 'There is no orc.yaml here or in a folder above'
      : `${configFile}: no such file`,
    `orc init${configFile === undefined ? '' : ` ${dirname(configFile)}`} writes one, or name yours with --config FILE or ORC_CONFIG. A minimal one: agents: { Master: {}, Worker: { parent: Master } }`,
  )
}

export function notRunning({ configFile, stateFolder }: TeamLocation): AppError {
  const isMissing = configFile === undefined ? stateFolder === undefined : !existsSync(configFile)
  if (isMissing) return noTeam(configFile)
  return fault('SERVICE_UNREACHABLE', 'The service is not running', `Start it: ${upCommand(configFile)}`)
}

export function hasEnded({ configFile }: TeamLocation, pid: number): AppError {
  return fault(
    'SERVICE_UNREACHABLE',
    `The service is not running: process ${pid} has ended`,
    `Start it: ${upCommand(configFile)}. If it runs in a container or under another process namespace, set ORC_URL.`,
  )
}

function upCommand(configFile: string | undefined): string {
  return configFile === undefined ? 'orc up' : `orc up --config ${configFile}`
}

export function unreachable(address: string, cause: NodeJS.ErrnoException): AppError {
  const neverArrived = /ECONNREFUSED|ENOENT|ENOTFOUND|EACCES/.test(cause.code ?? '')
  return fault(
    'SERVICE_UNREACHABLE',
    `The service at ${address} does not answer: ${cause.message || cause.code}`,
    neverArrived
      ? 'Start it: orc up. `orc doctor` shows what is wrong.'
      : 'The command may or may not have been carried out; check with `orc messages` or `orc audit --since 1m`.',
    cause,
  )
}

export function notOrchub(address: string): AppError {
  return fault(
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
    return fault(
      'UNAUTHENTICATED',
      `No token found: ORC_TOKEN is not set, and ${reason}`,
      "The service creates the operator's token when it starts: orc up. For an agent's token: orc token AGENT",
    )
  }
  if (code !== undefined) {
    const hint = 'Only the user who runs the service is the operator. Agents set ORC_TOKEN.'
    return fault('FORBIDDEN', `The operator's token cannot be read: ${file} (${code})`, hint, cause)
  }
  const mode = (statSync(file).mode & 0o777).toString(8)
  return fault(
    'FORBIDDEN',
    `Others can read the operator's token: ${file} has mode 0${mode}`,
    `Run: chmod 600 ${file}. If others may have read it, delete it, restart the service, and revoke the old token (orc token list).`,
  )
}

export function badToken(file: string | undefined): AppError {
  return file === undefined
    ? fault(
        'UNAUTHENTICATED',
        'ORC_TOKEN does not hold a token',
        'Set it to the output of: orc token AGENT; or unset it.',
      )
    : fault('UNAUTHENTICATED', `${file} does not hold a token`, 'Delete it and start the service again.')
}

export function tokenInArguments(): AppError {
  return usage(
    'Tokens are not accepted on the command line, where other users can see them',
    "Set ORC_TOKEN in the agent's environment; the operator's token is read from the state folder.",
  )
}

export function needsValue(name: string, value: string): AppError {
  return usage(
    `--${name} needs a value`,
    `Example: --${name} ${value}. If the value begins with dashes: --${name}=--${value}`,
  )
}

/** An error rather than a warning: a typo must not send a command with a field missing. */
export function noSuchField(verb: string, name: string, fields: readonly string[]): AppError {
  const word = dashed(name)
  return new AppError('USAGE', `orc ${verb} has no option --${word}`, {
    hint: seeHelp(verb),
    data: { unknown: { word, among: fields.map(dashed), prefix: '--' } satisfies Unknown },
  })
}

export function missingField(verb: string, field: string): AppError {
  return usage(`--${dashed(field)} is missing`, seeHelp(verb))
}

export function missingText(verb: string, body: string): AppError {
  const name = body.toUpperCase()
  return usage(
    `${name} is missing`,
    `Put ${name} after the options, or - to read it from standard input. ${seeHelp(verb)}`,
  )
}

export function textTwice(body: string): AppError {
  return usage('The text is given twice', `Keep one of --${dashed(body)}, - and the words.`)
}

export function noJson(verb: string, instead: string): AppError {
  return usage(`orc ${verb} has no JSON output`, instead)
}

function seeHelp(verb: string): string {
  return `orc ${verb} --help shows its options.`
}

/** A field as people type it: `in_reply_to` is --in-reply-to. */
export function dashed(field: string): string {
  return field.replaceAll('_', '-')
}
