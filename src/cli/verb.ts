import type { TeamLocation } from './connection/team-location.ts'

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

/** One verb of the command line that is not a command type. Its help and its completion are read off this. */
export interface Verb {
  /** An everyday verb, `status`, or a noun and its verb, `audit verify`. */
  name: string
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
  location: TeamLocation
  /** The value of an option that was given. */
  option(name: string): string | undefined
  flag(name: string): boolean
  program: Program
}

/** The program as a whole, for help, completion and the version. */
export interface Program {
  /** All of them, or those whose name starts with the prefix. */
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
  { name: 'json', summary: 'print JSON, one value a line' },
  { name: 'config', value: 'FILE', summary: 'the orc.yaml of the team (or ORC_CONFIG)' },
  { name: 'help', short: 'h', summary: 'show this' },
]
