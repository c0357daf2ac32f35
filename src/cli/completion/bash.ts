import { type CompletedVerb, firstWords, type Offer } from './table.ts'

export function bashScript(table: readonly CompletedVerb[]): string {
  const pairs = table.filter(({ name }) => name.includes(' ')).map(({ name }) => `'${name}'`)
  const values = table.flatMap(({ name, options }) =>
    options.flatMap(({ name: option, short, value }) =>
      value === undefined
        ? []
        : [
            `    '${name} --${option}'${short === undefined ? '' : `|'${name} -${short}'`}) ${offer(value)}; return ;;`,
          ],
    ),
  )
  const words = table.map(
    ({ name, options, argument }) =>
      `    '${name}') ${offer(argument)}; options='${options.map((option) => `--${option.name}`).join(' ')}' ;;`,
  )
  return `# Completion of orc for bash. In ~/.bashrc: source <(orc completion bash)
_orc() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} verb=\${COMP_WORDS[1]} options=
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    _orc_words '${firstWords(table)
      .map(({ name }) => name)
      .join(' ')} --help --version'
    return
  fi
  if [ "$COMP_CWORD" -gt 2 ]; then
    case "$verb \${COMP_WORDS[2]}" in ${pairs.join('|')}) verb="$verb \${COMP_WORDS[2]}" ;; esac
  fi
  case "$verb $previous" in
${values.join('\n')}
  esac
  case "$verb" in
${words.join('\n')}
  esac
  case "$current" in -*) _orc_words "$options" ;; esac
}
_orc_words() { COMPREPLY=($(compgen -W "$1" -- "$current")); }
_orc_agents() { COMPREPLY=($(compgen -W "$(orc completion agents 2>/dev/null)" -- "$current")); }
_orc_files() { COMPREPLY=($(compgen -f -- "$current")); }
complete -o bashdefault -F _orc orc`
}

function offer(value: Offer): string {
  if (value === 'agents') return '_orc_agents'
  if (value === 'files') return '_orc_files'
  return value === 'nothing' ? ':' : `_orc_words '${value.words.join(' ')}'`
}
