import { builtInTypes } from '../../command-types.ts'
import { bashScript } from '../../completion/bash.ts'
import { fishScript } from '../../completion/fish.ts'
import { completionTable } from '../../completion/table.ts'
import { zshScript } from '../../completion/zsh.ts'
import { loadTeam } from '../../connection/offline.ts'
import { noJson } from '../../errors.ts'
import { print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const
type Shell = keyof typeof SCRIPTS

export const verb: Verb = {
  name: 'completion',
  summary: 'print the shell completion script for commands, options and agents',
  details: '`orc completion agents` lists the agents in orc.yaml; the scripts use it.',
  arguments: [{ name: 'SHELL', choices: Object.keys(SCRIPTS), unlisted: ['agents'] }],
  examples: [
    'source <(orc completion bash)    # in ~/.bashrc',
    'source <(orc completion zsh)     # in ~/.zshrc, after compinit',
    'orc completion fish > ~/.config/fish/completions/orc.fish',
  ],
  async run({ words, program, location, json }) {
    const shell = words[0] as Shell | 'agents'
    if (shell === 'agents') {
      for (const { name } of (await loadTeam(location)).agents) json ? printJson(name) : print(name)
    } else if (json) throw noJson('completion', 'Drop --json.')
    else print(SCRIPTS[shell](completionTable(program, await program.verbs(), await builtInTypes())))
    return 0
  },
}
