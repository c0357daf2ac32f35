import { existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { AppError, type ErrorCode } from '../base/errors.ts'
import type { TeamLocation } from './connection/team-location.ts'
import type { Unknown } from './print-error.ts'

/** What can go wrong before a command reaches the service, each with what to do about it. */
function fault(code: ErrorCode, message: string, hint: string, cause?: unknown): AppError {
  return new AppError(code, message, { hint, ...(cause === undefined ? {} : { cause }) })
}

export function usage(message: string, hint: string): AppError {
  return fault('USAGE', message, hint)
}

/** The same wherever a team is needed and there is none, whether its service would be asked or its file read. */
export function noTeam(configFile: string | undefined): AppError {
  return fault(
    'NOT_FOUND',
    configFile === undefined
      ? 'There is no orc.yaml here or in a folder above'
      : `${configFile}: there is no such file`,
    `orc init${configFile === undefined ? '' : ` ${dirname(configFile)}`} writes a first one, or name yours with --config FILE or ORC_CONFIG. The smallest: agents: { Master: {}, Worker: { parent: Master } }`,
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
    `Start it: ${upCommand(configFile)}. If it runs where its process cannot be seen, as in a container, set ORC_URL.`,
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
      ? 'Start it: orc up. `orc doctor` says more.'
      : 'Whether the command was carried out is not known; `orc messages` or `orc audit --since 1m` shows it.',
    cause,
  )
}

export function notOrchub(address: string): AppError {
  return fault(
    'SERVICE_UNREACHABLE',
    `The server at ${address} is not Orchub`,
    'Does ORC_URL point to something else?',
  )
}

export function noAddress(address: string): AppError {
  return usage(
    `"${address}" is not a service address`,
    'ORC_URL is such as http://127.0.0.1:7420 or unix:/path/to/socket',
  )
}

export function noToken(file: string | undefined, cause: unknown): AppError {
  const code = (cause as NodeJS.ErrnoException).code
  if (file === undefined || code === 'ENOENT') {
    const reason = file === undefined ? 'no state folder is known' : `there is no ${file}`
    return fault(
      'UNAUTHENTICATED',
      `There is no token: ORC_TOKEN is not set, and ${reason}`,
      "The service makes the operator's file when it starts: orc up. An agent gets its token from: orc token AGENT",
    )
  }
  if (code !== undefined) {
    const hint = 'Only the user who runs the service is the operator. An agent sets ORC_TOKEN.'
    return fault('FORBIDDEN', `The operator's token cannot be read: ${file} (${code})`, hint, cause)
  }
  const mode = (statSync(file).mode & 0o777).toString(8)
  return fault(
    'FORBIDDEN',
    `Others can read the operator's token: ${file} has mode 0${mode}`,
    `chmod 600 ${file}. If others may have read it: delete it, restart the service, and revoke the old one (orc token list).`,
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
    'A token never goes on the command line: other users can see it there',
    "An agent sets ORC_TOKEN in its environment; the operator's token is read from the state folder.",
  )
}

/** An option whose value is missing. */
export function needsValue(name: string, value: string): AppError {
  return usage(
    `--${name} needs a value`,
    `Such as --${name} ${value}; one that begins with dashes: --${name}=--${value}`,
  )
}

/** A slip of the finger must not send a command with a part of it left out. */
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

/** A field as it is typed: `in_reply_to` is --in-reply-to. */
export function dashed(field: string): string {
  return field.replaceAll('_', '-')
}
