import { AppError } from '../base/errors.ts'
import { needsValue, tokenInArguments, usage } from './errors.ts'
import type { Unknown } from './print-error.ts'
import { COMMON_OPTIONS, type Option, type Verb } from './verb.ts'

interface TypedArguments {
  words: string[]
  options: Map<string, string | true>
}

/** Reads the words after a verb by the verb's own tables; throws a USAGE error for the first that doesn't fit. */
export function readTyped(verb: Verb, argv: readonly string[]): TypedArguments {
  const typed: TypedArguments = { words: [], options: new Map() }
  const known = [...(verb.options ?? []), ...COMMON_OPTIONS]
  for (let at = 0; at < argv.length; at++) {
    const word = argv[at]!
    if (word === '--') {
      typed.words.push(...argv.slice(at + 1))
      break
    }
    if (word === '-' || !word.startsWith('-')) typed.words.push(word)
    else at += readOption(verb, known, typed, word, argv[at + 1])
  }
  if (!typed.options.has('help')) checkWords(verb, typed.words)
  return typed
}

/** Returns how many of the following words it consumed. */
function readOption(
  verb: Verb,
  known: readonly Option[],
  typed: TypedArguments,
  word: string,
  next: string | undefined,
): number {
  const [, name, attached] = /^--([^=]+)(?:=(.*))?$/s.exec(word) ?? []
  if (name === 'token') throw tokenInArguments()
  const option = known.find((one) => (name === undefined ? word === `-${one.short}` : one.name === name))
  if (option === undefined) throw unknownOption(verb, known, word)
  if (option.value === undefined) {
    if (attached !== undefined) throw usage(`--${option.name} takes no value`, seeHelp(verb))
    typed.options.set(option.name, true)
    return 0
  }
  const value = attached ?? next
  if (value === undefined || (attached === undefined && value.startsWith('--'))) {
    throw needsValue(option.name, option.value)
  }
  checkChoice(`--${option.name}`, option.choices, value)
  typed.options.set(option.name, value)
  return attached === undefined ? 1 : 0
}

function checkWords(verb: Verb, words: readonly string[]): void {
  const wanted = verb.arguments ?? []
  const missing = wanted.find((argument, index) => !argument.optional && words[index] === undefined)
  if (missing !== undefined) throw usage(`${missing.name} is missing`, `Usage: ${usageLine(verb)}`)
  for (const [index, { name, choices, unlisted }] of wanted.entries()) {
    const word = words[index]
    if (word !== undefined && !unlisted?.includes(word)) checkChoice(name, choices, word)
  }
  const extra = words[wanted.length]
  if (extra === undefined || wanted.at(-1)?.rest) return
  // The first word may be a mistyped verb of this noun: `orc audit verfy`, `orc run shwo run_1`.
  throw new AppError('USAGE', `Unexpected argument "${extra}"`, {
    hint: `Usage: ${usageLine(verb)}`,
    data: {
      unknown: { word: `${verb.name.split(' ')[0]} ${words[0]}`, among: [], verbs: true } satisfies Unknown,
    },
  })
}

function checkChoice(name: string, choices: readonly string[] | undefined, value: string): void {
  if (choices === undefined || choices.includes(value)) return
  throw new AppError('USAGE', `${name} must be one of: ${choices.join(', ')} (got "${value}")`, {
    data: { unknown: { word: value, among: choices } satisfies Unknown },
  })
}

function unknownOption(verb: Verb, known: readonly Option[], word: string): AppError {
  return new AppError('USAGE', `orc ${verb.name} has no option ${word.replace(/=.*/s, '')}`, {
    hint: seeHelp(verb),
    data: {
      unknown: {
        word: word.replace(/^-+|=.*/gs, ''),
        among: known.map(({ name }) => name),
        prefix: '--',
      } satisfies Unknown,
    },
  })
}

function seeHelp(verb: Verb): string {
  return `orc ${verb.name} --help shows its options.`
}

export function usageLine(verb: Verb): string {
  const words = (verb.arguments ?? []).map(({ name, optional, rest }) => {
    const shown = rest ? `${name}…` : name
    return optional ? `[${shown}]` : shown
  })
  return ['orc', verb.name, ...words, ...(verb.options?.length ? ['[options]'] : [])].join(' ')
}
