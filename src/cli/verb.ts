import type { Place } from './connection/team-location.ts'

export interface Option {
  name: string
  /** The name of its value; without one it is a switch. */
  value?: string
  /** A letter for short: `-o FILE`. */
  short?: string
  summary: string
  /** The values it may have, for completion and the check. */
  choices?: readonly string[]
}

export interface Argument {
  name: string
  optional?: true
  /** Takes all the words that are left. */
  rest?: true
  choices?: readonly string[]
  /** Taken as well, and offered to nobody: for our own scripts. */
  unlisted?: readonly string[]
}

export const GROUPS = ['Run', 'Plans', 'Talk', 'People', 'Look', 'Rules', 'Tools', 'For programs'] as const
export type Group = (typeof GROUPS)[number]

/** One verb of the command line that is not a command type. Its help and its completion are read off this. */
export interface Verb {
  /** `audit`, or `audit verify` for one below it. */
  name: string
  group: Group
  summary: string
  /** More than the summary, where it needs saying. */
  details?: string
  arguments?: readonly Argument[]
  options?: readonly Option[]
  examples: readonly string[]
  /** Gives the exit code. Errors are thrown as AppError. */
  run(invocation: Invocation): Promise<number>
}

/** What was typed, and where. */
export interface Invocation {
  words: readonly string[]
  json: boolean
  place: Place
  /** The value of an option that was given. */
  option(name: string): string | undefined
  flag(name: string): boolean
  program: Program
}

/** The program as a whole, for help, completion and the version. */
export interface Program {
  /** All of them, or those whose name begins so. */
  verbs(prefix?: string): Promise<readonly Verb[]>
  version(): Promise<string>
}

/** Every verb has these. */
export const COMMON_OPTIONS: readonly Option[] = [
  { name: 'json', summary: 'print JSON, one value a line' },
  { name: 'config', value: 'FILE', summary: 'the orc.yaml of the team (or ORC_CONFIG)' },
  { name: 'help', short: 'h', summary: 'show this' },
]
