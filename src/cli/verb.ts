import { findTeamLocation, readArguments, type TeamLocation } from './connection/connection.ts'
import { noSuchOption, seeHelp, usage } from './errors.ts'
import { fitted, table } from './output/layout.ts'
import { paint, plainLine, print, printJson, remark } from './output/print.ts'

export interface Option {
  name: string
  /** Placeholder for the value; an option without one is a flag. */
  value?: string
  /** Short form: `o` for `-o FILE`. */
  short?: string
  summary: string
  /** Allowed values, for validation and completion. */
  choices?: readonly string[]
}

interface Argument {
  name: string
  optional?: true
  /** Takes all remaining words. */
  rest?: true
  choices?: readonly string[]
  /** Accepted but not offered: for the completion scripts themselves. */
  unlisted?: readonly string[]
  /** Left out of the usage line. */
  hidden?: true
}

/** A verb of the command line that is not a command type. Help and completion are derived from it. */
export interface Verb {
  /** An everyday verb, `status`, or a noun and its verb, `audit verify`. */
  name: string
  summary: string
  /** Further help below the summary. */
  details?: string
  arguments?: readonly Argument[]
  options?: readonly Option[]
  examples: readonly string[]
  /** Returns the exit code; throws AppError. */
  run(invocation: Invocation): Promise<number>
}

/** The parsed command line and the team it addresses. */
export interface Invocation {
  words: readonly string[]
  json: boolean
  location: TeamLocation
  option(name: string): string | undefined
  flag(name: string): boolean
  /** The given options, as fields of a request. */
  given<Name extends string>(...names: Name[]): { [name in Name]?: string }
  /** Prints JSON with --json, otherwise the text. Returns exit code 0. */
  show(value: unknown, text: () => string): number
  /** The same for a list: one line of JSON per value; without values, a remark. */
  showAll<Value>(values: readonly Value[], text: (values: readonly Value[]) => string, none: string): number
  program: Program
}

/** The program as a whole, for help, completion and the version. */
export interface Program {
  /** All verbs, or those whose name starts with the prefix. */
  verbs(prefix?: string): Promise<readonly Verb[]>
  /** The verb behind a name or an alias. */
  find(words: readonly string[]): Promise<Verb | undefined>
  /** Noun → what its verbs are about. */
  readonly nouns: Readonly<Record<string, string>>
  /** Other name → name. */
  readonly aliases: Readonly<Record<string, string>>
  version(): Promise<string>
}

/** Every verb has these. */
export const COMMON_OPTIONS: readonly Option[] = [
  { name: 'json', summary: 'print JSON, one value per line' },
  { name: 'config', value: 'FILE', summary: 'the orc.yaml of the team (or ORC_CONFIG)' },
  { name: 'help', short: 'h', summary: 'show this help' },
]

/** Reads the words after a verb by the verb's own tables; throws a USAGE error for the first that doesn't fit. */
async function readTyped(verb: Verb, argv: readonly string[]) {
  const known = [...(verb.options ?? []), ...COMMON_OPTIONS]
  const names = known.map((one) => one.name)
  const read = await readArguments(argv, (word, name) => {
    const option = known.find((one) => (name === undefined ? word === `-${one.short}` : one.name === name))
    if (option === undefined) throw noSuchOption(verb.name, word, names)
    return option
  })
  const options = new Map(read.options)
  for (const [name, value] of read.options) {
    const { choices } = known.find((one) => one.name === name)!
    if (value !== undefined) checkChoice(verb, `--${name}`, choices, value)
  }
  if (!options.has('help')) checkWords(verb, read.words)
  return { words: read.words, options }
}

function checkWords(verb: Verb, words: readonly string[]): void {
  const wanted = verb.arguments ?? []
  const missing = wanted.find((argument, index) => !argument.optional && words[index] === undefined)
  if (missing !== undefined) throw usage(`${missing.name} is missing`, `Usage: ${usageLine(verb)}`)
  for (const [index, { name, choices, unlisted }] of wanted.entries()) {
    const word = words[index]
    if (word !== undefined && !unlisted?.includes(word)) checkChoice(verb, name, choices, word)
  }
  const extra = words[wanted.length]
  if (extra === undefined || wanted.at(-1)?.rest) return
  // The first word may be a mistyped verb of this noun: `orc audit verfy`, `orc run shwo run_1`.
  const word = `${verb.name.split(' ')[0]} ${words[0]}`
  throw usage(`Unexpected argument "${extra}"`, `Usage: ${usageLine(verb)}`, { word, among: [], verbs: true })
}

function checkChoice(verb: Verb, name: string, choices: readonly string[] | undefined, value: string): void {
  if (choices === undefined || choices.includes(value)) return
  const message = `${name} must be one of: ${choices.join(', ')} (got "${value}")`
  throw usage(message, seeHelp(verb.name), { word: value, among: choices })
}

export function usageLine(verb: Verb): string {
  const shownArguments = (verb.arguments ?? []).filter(({ hidden }) => !hidden)
  const words = shownArguments.map(({ name, optional, rest }) => {
    const shown = rest ? `${name}…` : name
    return optional ? `[${shown}]` : shown
  })
  return ['orc', verb.name, ...words, ...(verb.options?.length ? ['[options]'] : [])].join(' ')
}

export function showVerbHelp(verb: Verb, below: readonly Verb[], json: boolean): void {
  if (json) printJson(verbFacts(verb))
  else print(verbHelp(verb, below))
}

function verbFacts(verb: Verb) {
  const { run: _, ...facts } = verb
  return { ...facts, options: [...(verb.options ?? []), ...COMMON_OPTIONS], usage: usageLine(verb) }
}

function verbHelp(verb: Verb, below: readonly Verb[]): string {
  const also = table(
    below.map((one) => [usageLine(one), one.summary]),
    '  ',
  )
  const about = [
    `${verb.summary.charAt(0).toUpperCase()}${verb.summary.slice(1)}.`,
    ...(verb.details === undefined ? [] : ['', verb.details]),
    ...(below.length === 0 ? [] : ['', paint('bold', 'Also:'), also]),
  ]
  const options = [...(verb.options ?? []), ...COMMON_OPTIONS]
  return helpPage({ usage: usageLine(verb), about, options, examples: verb.examples })
}

/** The help of a verb or a command type. Examples aren't wrapped, so that they can be copied. */
export function helpPage(page: {
  usage: string
  about: readonly string[]
  options: readonly Option[]
  examples: readonly string[]
}): string {
  const { usage, about, options, examples } = page
  const head = [
    `${paint('bold', 'Usage:')} ${usage}`,
    '',
    ...about,
    '',
    paint('bold', 'Options:'),
    table(options.flatMap(optionRows), '  '),
    '',
    paint('bold', examples.length === 1 ? 'Example:' : 'Examples:'),
  ]
  return [fitted(head.join('\n')), ...examples.map((example) => `  ${example}`)].join('\n')
}

/** The other verbs of the noun, for the verb that the bare noun runs. */
async function below({ name }: Verb, { verbs, nouns, aliases }: Program): Promise<readonly Verb[]> {
  const [noun = ''] = name.split(' ')
  if (!Object.hasOwn(nouns, noun) || (name !== noun && aliases[noun] !== name)) return []
  return (await verbs(`${noun} `)).filter((one) => one.name !== name)
}

/** Parses the words after a verb and runs it. */
export async function runVerb(verb: Verb, argv: readonly string[], program: Program): Promise<number> {
  const { words, options } = await readTyped(verb, argv)
  if (options.has('help')) {
    showVerbHelp(verb, await below(verb, program), options.has('json'))
    return 0
  }
  const option = (name: string) => options.get(name)
  const json = options.has('json')
  return await verb.run({
    words,
    json,
    location: findTeamLocation(option('config')),
    option,
    flag: (name) => options.has(name),
    given: (...names) =>
      Object.fromEntries(
        names.flatMap((name) => (option(name) === undefined ? [] : [[name, option(name)]])),
      ) as never,
    show(value, text) {
      if (json) printJson(value)
      else print(text())
      return 0
    },
    showAll(values, text, none) {
      if (json) values.forEach(printJson)
      else if (values.length > 0) print(text(values))
      else remark(none)
      return 0
    },
    program,
  })
}

/** Choices get a line of their own unless the value or the summary already lists them. */
function optionRows({ name, value, short, summary, choices = [] }: Option): string[][] {
  const shown = value === undefined ? '' : ` ${value}`
  const row = [`${short === undefined ? '' : `-${short}, `}--${name}${shown}`, summary]
  const areListed = choices.every((choice) => summary.includes(choice)) || value === choices.join('|')
  return areListed ? [row] : [row, ['', `one of: ${plainLine(choices.join(', '))}`]]
}
