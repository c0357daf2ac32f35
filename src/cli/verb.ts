import type { TeamLocation } from './connection/team-location.ts'

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
  /** Accepted but not offered by completion: for the completion scripts themselves. */
  unlisted?: readonly string[]
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
  { name: 'json', summary: 'print JSON, one value a line' },
  { name: 'config', value: 'FILE', summary: 'the orc.yaml of the team (or ORC_CONFIG)' },
  { name: 'help', short: 'h', summary: 'show this help' },
]
