import { COMMAND_OPTIONS, fieldOptions, NO_ACK } from '../command-help.ts'
import { type CommandHelp, verbOf } from '../command-types.ts'
import { COMMON_OPTIONS, type Option, type Program, type Verb } from '../verb.ts'

/** Candidates for a value: fixed words, and names that the shell looks up when it completes. */
export interface Offer {
  words?: readonly string[]
  find?: 'agents' | 'files'
}

export interface CompletedOption {
  name: string
  short?: string
  summary: string
  /** Undefined for a switch. */
  value?: Offer
}

/** A verb in the table that the scripts for bash, zsh and fish are generated from. */
export interface CompletedVerb {
  name: string
  summary: string
  options: readonly CompletedOption[]
  /** By position. */
  words: readonly Offer[]
  /** Another name of a verb. */
  isAlias?: true
}

export function completionTable(
  { nouns, aliases }: Pick<Program, 'nouns' | 'aliases'>,
  verbs: readonly Verb[],
  types: readonly CommandHelp[],
): CompletedVerb[] {
  const byName = new Map(verbs.map((verb) => [verb.name, verb]))
  const aliasOf = (alias: string) => byName.get(aliases[alias] ?? alias)
  const names = [...byName.keys(), ...Object.keys(aliases), ...types.flatMap(({ shell }) => shell ?? [])]
  const below = (noun: string) =>
    names.flatMap((name) => (name.startsWith(`${noun} `) ? [name.slice(noun.length + 1)] : []))
  const ofNouns = Object.entries(nouns).map(([noun, summary]) => {
    const bare = ofVerb(aliasOf(noun) ?? { name: noun, summary }, noun, below(noun))
    return { ...bare, summary }
  })
  return [
    ...ofNouns,
    ...verbs.filter(({ name }) => !Object.hasOwn(nouns, name)).map((verb) => ofVerb(verb, verb.name)),
    ...types.map((type) => ofType(type, verbOf(type))),
    ...types.flatMap((type) => (type.shell === undefined ? [] : [ofType(type, type.shell)])),
    ...Object.keys(aliases)
      .filter((alias) => !alias.startsWith('-') && !Object.hasOwn(nouns, alias))
      .map((alias) => ({ ...ofVerb(aliasOf(alias)!, alias), isAlias: true as const })),
  ]
}

/** Candidates for the first word. Aliases complete their options but aren't offered themselves. */
export function firstWords(table: readonly CompletedVerb[]): CompletedVerb[] {
  return table.filter(({ name, isAlias }) => !name.includes(' ') && !isAlias)
}

function ofVerb(
  verb: Pick<Verb, 'name' | 'summary' | 'arguments' | 'options'>,
  name: string,
  below: readonly string[] = [],
): CompletedVerb {
  const [first = {}, ...rest] = (verb.arguments ?? []).map((argument) =>
    offerOf(argument.name, argument.choices),
  )
  const words = [...new Set([...below, ...(first.words ?? [])])]
  return {
    name,
    summary: verb.summary,
    options: [...(verb.options ?? []), ...COMMON_OPTIONS].map(completed),
    words: [{ ...first, ...(words.length === 0 ? {} : { words }) }, ...rest],
  }
}

function ofType(type: CommandHelp, name: string): CompletedVerb {
  const extra = type.type === 'mailbox_check' ? [NO_ACK] : []
  return {
    name,
    summary: type.summary,
    options: [...fieldOptions(type), ...extra, ...COMMAND_OPTIONS].map(completed),
    words: [],
  }
}

function completed({ name, short, summary, value, choices }: Option): CompletedOption {
  return {
    name,
    ...(short === undefined ? {} : { short }),
    summary,
    ...(value === undefined ? {} : { value: offerOf(value, choices) }),
  }
}

const AGENTS = /^(AGENT|NAME|FROM|TO|TARGET|(ID\|)?AGENT\|PERSON)$/

const FILES = /^(FILE|FOLDER|PLAN|WORKSPACE)/

function offerOf(name: string, choices: readonly string[] | undefined): Offer {
  if (choices !== undefined) return { words: choices }
  if (FILES.test(name)) return { find: 'files' }
  return AGENTS.test(name) ? { find: 'agents' } : {}
}
