import type { CommandHelp } from './command-types.ts'
import { bashScript } from './completion/bash.ts'
import { fishScript } from './completion/fish.ts'
import { completionTable } from './completion/table.ts'
import { zshScript } from './completion/zsh.ts'
import type { Program, Verb } from './verb.ts'

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const

export type Shell = keyof typeof SCRIPTS
export const SHELLS = Object.keys(SCRIPTS) as Shell[]

/** Derived from the tables of verbs and command types, so completion never lags behind them. */
export function completionScript(
  shell: Shell,
  program: Pick<Program, 'nouns' | 'aliases'>,
  verbs: readonly Verb[],
  types: readonly CommandHelp[],
): string {
  return SCRIPTS[shell](completionTable(program, verbs, types))
}
