import { builtInTypes, type CommandHelp, commandOptions, verbOf } from '../../command-types.ts'
import { loadTeam } from '../../connection/client.ts'
import type { TeamLocation } from '../../connection/connection.ts'
import { noJson } from '../../errors.ts'
import { print, printJson } from '../../output/print.ts'
import { COMMON_OPTIONS, type Option, type Program, type Verb } from '../../verb.ts'

/** A line that asks the script for file names, because no candidate can be a colon. */
const FILES = ':'

/** Each script passes the words typed so far to `orc completion words`, which prints one candidate and its summary per line. */
const SCRIPTS: Readonly<Record<string, string>> = {
  bash: `# Completion of orc for bash. In ~/.bashrc: source <(orc completion bash)
_orc() {
  local current=\${COMP_WORDS[COMP_CWORD]} word
  COMPREPLY=()
  while IFS=$'\\t' read -r word _; do
    case "$word" in
      ${FILES}) COMPREPLY+=($(compgen -f -- "$current")) ;;
      *) COMPREPLY+=("$word") ;;
    esac
  done < <(orc completion words -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o bashdefault -F _orc orc`,

  zsh: `#compdef orc
# Completion of orc for zsh. In ~/.zshrc, after compinit: source <(orc completion zsh)
_orc() {
  local line
  local -a candidates
  for line in "\${(@f)$(orc completion words -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    case "$line" in
      ${FILES}) _files ;;
      ?*) candidates+=("\${\${line//:/\\\\:}/$'\\t'/:}") ;;
    esac
  done
  _describe 'orc' candidates
}
compdef _orc orc`,

  fish: `# Completion of orc for fish: orc completion fish > ~/.config/fish/completions/orc.fish
function __orc_candidates
  set -l typed (commandline -opc)
  set -l current (commandline -ct)
  for line in (orc completion words -- $typed[2..-1] "$current" 2>/dev/null)
    if test "$line" = ${FILES}
      __fish_complete_path "$current"
    else
      echo $line
    end
  end
end
complete -c orc -f -a '(__orc_candidates)'`,
}

export const verb: Verb = {
  name: 'completion',
  summary: 'print the shell completion script for commands, options and agents',
  details: '`orc completion agents` lists the agents in orc.yaml.',
  arguments: [
    { name: 'SHELL', choices: Object.keys(SCRIPTS), unlisted: ['agents', 'words'] },
    { name: 'WORD', optional: true, rest: true, hidden: true },
  ],
  examples: [
    'source <(orc completion bash)    # in ~/.bashrc',
    'source <(orc completion zsh)     # in ~/.zshrc, after compinit',
    'orc completion fish > ~/.config/fish/completions/orc.fish',
  ],
  async run({ words: [shell, ...typed], program, location, json }) {
    if (shell === 'agents') {
      for (const { name } of (await loadTeam(location)).agents) json ? printJson(name) : print(name)
    } else if (json) throw noJson('completion', 'Drop --json.')
    else if (shell === 'words') {
      const current = typed.at(-1) ?? ''
      for (const [word, summary] of await candidates(typed, program, location))
        if (word === FILES || word.startsWith(current)) print(`${word}\t${summary}`.trimEnd())
    } else print(SCRIPTS[shell!]!)
    return 0
  },
}

type Completion = readonly [word: string, summary: string]

/** The candidates for the last of the typed words, which may be empty or incomplete. */
async function candidates(
  typed: readonly string[],
  program: Program,
  location: TeamLocation,
): Promise<readonly Completion[]> {
  const before = typed.slice(0, -1)
  if (before.length === 0) return await firstWords(program)
  const types = await builtInTypes()
  const { options, words, count } = await findCommand(before, program, types)
  let position = 0
  let option: Option | undefined
  for (const word of before.slice(count)) {
    if (option !== undefined) option = undefined
    else if (word.startsWith('-'))
      option = options.find(
        ({ name, short, value }) => value && (word === `--${name}` || word === `-${short}`),
      )
    else position += 1
  }
  if (option !== undefined) return await valuesOf(option.value!, option.choices, location)
  if (typed.at(-1)!.startsWith('-')) return options.map(({ name, summary }) => [`--${name}`, summary])
  const verbs = position === 0 && count === 1 ? await verbsOf(before[0]!, program, types) : []
  const word = words[position] ?? (words.at(-1)?.rest ? words.at(-1) : undefined)
  return [...verbs, ...(word === undefined ? [] : await valuesOf(word.name, word.choices, location))]
}

async function firstWords(program: Program): Promise<Completion[]> {
  const verbs = (await program.verbs()).filter(({ name }) => !name.includes(' ') && !program.nouns[name])
  return [
    ...Object.entries(program.nouns),
    ...verbs.map(({ name, summary }) => [name, summary] as const),
    ...(await builtInTypes()).map((type) => [verbOf(type), type.summary] as const),
    ['--help', ''],
    ['--version', ''],
  ]
}

/** The command that the first one or two words name. A noun without a verb takes no options. */
async function findCommand(typed: readonly string[], program: Program, types: readonly CommandHelp[]) {
  for (const name of [typed.slice(0, 2), typed.slice(0, 1)]) {
    const count = name.length
    const verb = await program.find(name)
    if (verb !== undefined)
      return { options: [...(verb.options ?? []), ...COMMON_OPTIONS], words: verb.arguments ?? [], count }
    const type = types.find((one) => one.shell === name.join(' ') || verbOf(one) === name.join(' '))
    if (type !== undefined) return { options: commandOptions(type), words: [], count }
  }
  return { options: [], words: [], count: 1 }
}

async function verbsOf(noun: string, program: Program, types: readonly CommandHelp[]): Promise<Completion[]> {
  if (!Object.hasOwn(program.nouns, noun)) return []
  const all: Completion[] = [
    ...(await program.verbs(`${noun} `)).map(({ name, summary }) => [name, summary] as const),
    ...Object.entries(program.aliases).map(([alias, name]) => [alias, `the same as orc ${name}`] as const),
    ...types.map(({ shell, summary }) => [shell ?? '', summary] as const),
  ]
  return all
    .filter(([name]) => name.startsWith(`${noun} `))
    .map(([name, summary]) => [name.slice(noun.length + 1), summary])
}

const AGENT = /^(AGENT|NAME|FROM|TO|TARGET|(ID\|)?AGENT\|PERSON)$/
const FILE = /^(FILE|FOLDER|PLAN|WORKSPACE)/

/** The values for an argument or option, by its choices or the name of its placeholder. */
async function valuesOf(
  placeholder: string,
  choices: readonly string[] | undefined,
  location: TeamLocation,
): Promise<Completion[]> {
  if (choices !== undefined) return choices.map((choice) => [choice, ''])
  if (FILE.test(placeholder)) return [[FILES, '']]
  if (!AGENT.test(placeholder)) return []
  const team = await loadTeam(location).catch(() => undefined)
  return (team?.agents ?? []).map(({ name }) => [name, ''])
}
