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
  const options = table.map(
    ({ name, options }) =>
      `    '${name}') options='${options.map((option) => `--${option.name}`).join(' ')}' valued='${valued(options)}' ;;`,
  )
  const words = table.flatMap(({ name, words }) =>
    words.map((word, index) => `    '${name} ${index + 1}') ${offer(word)} ;;`),
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

function offer({ words = [], find }: Offer): string {
  const parts = [
    ...(words.length === 0 ? [] : [`_orc_offer '${words.join(' ')}'`]),
    ...(find === undefined ? [] : [`_orc_${find}`]),
  ]
  return parts.join('; ') || ':'
}
