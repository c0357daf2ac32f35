import { AppError } from '../model/errors.ts'

/** A command in the shell form, before anyone knows its parameters (S1.17). */
export interface Said {
  fields: Record<string, string>
  /** What is no option: the body, `-` for standard input. */
  words: string[]
  json: boolean
  help: boolean
  /** `--no-ack`: leave what mailbox-check prints unread. */
  keepUnread: boolean
  config?: string
  idempotencyKey?: string
}

/** `--key value` and `--key=value` become fields; the service says which ones the command has. */
export function readSaid(argv: readonly string[]): Said {
  const said: Said = { fields: {}, words: [], json: false, help: false, keepUnread: false }
  for (let at = 0; at < argv.length; at++) {
    const word = argv[at]!
    if (word === '--') {
      said.words.push(...argv.slice(at + 1))
      break
    }
    if (word === '-' || !word.startsWith('-')) said.words.push(word)
    else if (word === '--json') said.json = true
    else if (word === '--help' || word === '-h') said.help = true
    else if (word === '--no-ack') said.keepUnread = true
    else at += readOption(said, word, argv[at + 1])
  }
  return said
}

/** Gives how many of the words that follow were used. */
function readOption(said: Said, word: string, next: string | undefined): number {
  const [, name, attached] = /^--([^=]+)(?:=(.*))?$/s.exec(word) ?? []
  if (name === undefined) {
    throw usage(
      `"${word}" is no option`,
      'Options begin with two dashes. For text that begins with a dash, put -- before it.',
    )
  }
  if (name === 'token') throw tokenInArguments()
  const value = attached ?? next
  if (value === undefined || (attached === undefined && value.startsWith('--'))) {
    throw usage(
      `--${name} needs a value`,
      `Such as --${name} VALUE; a value that begins with dashes: --${name}=--VALUE`,
    )
  }
  keep(said, name, value)
  return attached === undefined ? 1 : 0
}

function keep(said: Said, name: string, value: string): void {
  if (name === 'config') said.config = value
  else if (name === 'idempotency-key') said.idempotencyKey = checkKey(value)
  else {
    const field = name.replaceAll('-', '_')
    if (Object.hasOwn(said.fields, field)) throw usage(`--${name} is there twice`, 'Keep one of the two.')
    Object.defineProperty(said.fields, field, { value, enumerable: true })
  }
}

/** It becomes a header, so that a line end in it would be another header. */
function checkKey(key: string): string {
  if (/^[\x21-\x7e]{1,200}$/.test(key)) return key
  throw usage('This is no idempotency key', 'At most 200 letters, digits and signs, without spaces.')
}

export function tokenInArguments(): AppError {
  return usage(
    'A token never goes on the command line: other users can see it there',
    "An agent sets ORC_TOKEN in its environment; the operator's token is read from the state folder.",
  )
}

export function usage(message: string, hint: string): AppError {
  return new AppError('USAGE', message, { hint })
}
