import {
  builtInTypes,
  COMMAND_OPTIONS,
  type CommandHelp,
  fieldOptions,
  NO_ACK,
  verbOf,
} from '../../command-types.ts'
import { loadTeam } from '../../connection/client.ts'
import { noJson } from '../../errors.ts'
import { print, printJson } from '../../output/print.ts'
import { COMMON_OPTIONS, type Option, type Program, type Verb } from '../../verb.ts'

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

function bashScript(table: readonly CompletedVerb[]): string {
  const pairs = table.filter(({ name }) => name.includes(' ')).map(({ name }) => `'${name}'`)
  const values = table.flatMap(({ name, options }) =>
    options.flatMap(({ name: option, short, value }) =>
      value === undefined
        ? []
        : [
            `    '${name} --${option}'${short === undefined ? '' : `|'${name} -${short}'`}) ${bashOffer(value)}; return ;;`,
          ],
    ),
  )
  const options = table.map(
    ({ name, options }) =>
      `    '${name}') options='${options.map((option) => `--${option.name}`).join(' ')}' valued='${valued(options)}' ;;`,
  )
  const words = table.flatMap(({ name, words }) =>
    words.map((word, index) => `    '${name} ${index + 1}') ${bashOffer(word)} ;;`),
  )
  return `# Completion of orc for bash. In ~/.bashrc: source <(orc completion bash)
_orc() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} verb=\${COMP_WORDS[1]}
  local options= valued= place=1 at=2
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    _orc_offer '${firstWords(table)
      .map(({ name }) => name)
      .join(' ')} --help --version'
    return
  fi
  if [ "$COMP_CWORD" -gt 2 ]; then
    case "$verb \${COMP_WORDS[2]}" in ${pairs.join('|')}) verb="$verb \${COMP_WORDS[2]}" at=3 ;; esac
  fi
  case "$verb $previous" in
${values.join('\n')}
  esac
  case "$verb" in
${options.join('\n')}
  esac
  case "$current" in -*) _orc_offer "$options"; return ;; esac
  for (( ; at < COMP_CWORD; at++ )); do
    case " $valued " in *" \${COMP_WORDS[at]} "*) (( at++ )); continue ;; esac
    case "\${COMP_WORDS[at]}" in -*) ;; *) (( place++ )) ;; esac
  done
  case "$verb $place" in
${words.join('\n')}
  esac
}
_orc_offer() { COMPREPLY+=($(compgen -W "$1" -- "$current")); }
_orc_agents() { _orc_offer "$(orc completion agents 2>/dev/null)"; }
_orc_files() { COMPREPLY+=($(compgen -f -- "$current")); }
complete -o bashdefault -F _orc orc`
}

/** Options with a value: the word after them isn't a positional argument. */
function valued(options: CompletedVerb['options']): string {
  return options
    .filter(({ value }) => value !== undefined)
    .flatMap(({ name, short }) => [`--${name}`, ...(short === undefined ? [] : [`-${short}`])])
    .join(' ')
}

function bashOffer({ words = [], find }: Offer): string {
  const parts = [
    ...(words.length === 0 ? [] : [`_orc_offer '${words.join(' ')}'`]),
    ...(find === undefined ? [] : [`_orc_${find}`]),
  ]
  return parts.join('; ') || ':'
}

function zshScript(table: readonly CompletedVerb[]): string {
  const pairs = table.filter(({ name }) => name.includes(' ')).map(({ name }) => `'${name}'`)
  const cases = table.map(({ name, options, words }) => {
    const specs = [
      ...options.flatMap(optionSpecs),
      ...words.map((word, index) => `'${index + 1}: :${zshAction(word)}'`),
    ]
    return `    '${name}') _arguments ${specs.join(' ')} ;;`
  })
  return `#compdef orc
# Completion of orc for zsh. In ~/.zshrc, after compinit: source <(orc completion zsh)
_orc() {
  local verb=$words[2]
  local -a verbs=(
${firstWords(table)
  .map(({ name, summary }) => `    '${name}:${zshQuoted(summary)}'`)
  .join('\n')}
  )
  if (( CURRENT == 2 )); then
    _describe 'command' verbs
    return
  fi
  shift words
  (( CURRENT-- ))
  if (( CURRENT > 2 )); then
    case "$verb $words[2]" in
      ${pairs.join('|')})
        verb="$verb $words[2]"
        shift words
        (( CURRENT-- ))
        ;;
    esac
  fi
  case $verb in
${cases.join('\n')}
  esac
}
_orc_agents() {
  local -a agents=(\${(f)"$(orc completion agents 2>/dev/null)"})
  compadd -- $agents $@
}
compdef _orc orc`
}

function optionSpecs({ name, short, summary, value }: CompletedOption): string[] {
  const text = `[${zshQuoted(summary).replace(/[[\]:]/g, '\\\\$&')}]${value === undefined ? '' : `: :${zshAction(value)}`}`
  return [`'--${name}${text}'`, ...(short === undefined ? [] : [`'-${short}${text}'`])]
}

function zshAction({ words = [], find }: Offer): string {
  // The leading space makes _arguments call the function without its own options.
  if (find === 'agents') return [' _orc_agents', ...words].join(' ')
  if (find === 'files') return words.length === 0 ? '_files' : `{compadd ${words.join(' ')}; _files}`
  return words.length === 0 ? ' ' : `(${words.join(' ')})`
}

/** Inside single quotes. */
function zshQuoted(text: string): string {
  return text.replaceAll("'", "'\\''")
}

function fishScript(table: readonly CompletedVerb[]): string {
  const lines = [
    '# Completion of orc for fish: orc completion fish > ~/.config/fish/completions/orc.fish',
    'complete -c orc -f',
  ]
  for (const { name, summary } of firstWords(table)) {
    lines.push(`complete -c orc -n __fish_use_subcommand -a ${name} -d '${fishQuoted(summary)}'`)
  }
  for (const { name, options, words } of table) {
    const condition = `-n '${seen(name)}'`
    // fish can't count positional words apart from options, so every position offers all of them.
    const actions = new Set(words.map(fishAction).filter((one) => one !== ''))
    lines.push(...[...actions].map((one) => `complete -c orc ${condition} ${one}`))
    lines.push(...options.map((option) => `complete -c orc ${condition} ${optionWords(option)}`))
  }
  return lines.join('\n')
}

function seen(name: string): string {
  return name
    .split(' ')
    .map((word) => `__fish_seen_subcommand_from ${word}`)
    .join('; and ')
}

function optionWords({ name, short, summary, value }: CompletedOption): string {
  const flag = `-l ${name}${short === undefined ? '' : ` -s ${short}`} -d '${fishQuoted(summary)}'`
  if (value === undefined) return flag
  const offered = fishAction(value)
  return offered === '' ? `${flag} -x` : `${flag} -r ${offered}`
}

function fishAction({ words = [], find }: Offer): string {
  if (find === 'files') return words.length === 0 ? '-F' : `-F -a '${words.join(' ')}'`
  const agents = find === 'agents' ? ['(orc completion agents 2>/dev/null)'] : []
  const all = [...words, ...agents]
  return all.length === 0 ? '' : `-f -a '${all.join(' ')}'`
}

function fishQuoted(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")
}

/** Candidates for a value: fixed words, and names that the shell looks up when it completes. */
interface Offer {
  words?: readonly string[]
  find?: 'agents' | 'files'
}

interface CompletedOption {
  name: string
  short?: string
  summary: string
  /** Undefined for a switch. */
  value?: Offer
}

/** A verb in the table that the scripts for bash, zsh and fish are generated from. */
interface CompletedVerb {
  name: string
  summary: string
  options: readonly CompletedOption[]
  /** By position. */
  words: readonly Offer[]
  /** Another name of a verb. */
  isAlias?: true
}

function completionTable(
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
function firstWords(table: readonly CompletedVerb[]): CompletedVerb[] {
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
