import { fieldOptions, NO_ACK, SPOKEN_OPTIONS } from '../command-help.ts'
import { type CommandType, verbOf } from '../command-types.ts'
import { COMMON_OPTIONS, type Option, type Verb } from '../verb.ts'

/** What a shell can offer as a value: these words, and what it finds out when it is asked. */
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

/** All that the three scripts are made from. */
export interface CompletedVerb {
  name: string
  summary: string
  options: readonly CompletedOption[]
  /** By place. */
  words: readonly Offer[]
}

export function completionTable(verbs: readonly Verb[], types: readonly CommandType[]): CompletedVerb[] {
  return [...verbs.map((verb) => ofVerb(verb, verbs)), ...types.map(ofType)]
}

/** The verbs of one word, which are offered first. */
export function firstWords(table: readonly CompletedVerb[]): CompletedVerb[] {
  return table.filter(({ name }) => !name.includes(' '))
}

function ofVerb(verb: Verb, verbs: readonly Verb[]): CompletedVerb {
  const below = verbs.flatMap(({ name }) =>
    name.startsWith(`${verb.name} `) ? [name.slice(verb.name.length + 1)] : [],
  )
  const [first = {}, ...rest] = (verb.arguments ?? []).map(({ name, choices }) => offerOf(name, choices))
  const words = [...new Set([...below, ...(first.words ?? [])])]
  return {
    name: verb.name,
    summary: verb.summary,
    options: [...(verb.options ?? []), ...COMMON_OPTIONS].map(completed),
    words: [{ ...first, ...(words.length === 0 ? {} : { words }) }, ...rest],
  }
}

function ofType(type: CommandType): CompletedVerb {
  const extra = type.type === 'mailbox_check' ? [NO_ACK] : []
  return {
    name: verbOf(type),
    summary: type.summary,
    options: [...fieldOptions(type), ...extra, ...SPOKEN_OPTIONS].map(completed),
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
