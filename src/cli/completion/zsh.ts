import { type CompletedOption, type CompletedVerb, firstWords, type Offer } from './table.ts'

export function zshScript(table: readonly CompletedVerb[]): string {
  const pairs = table.filter(({ name }) => name.includes(' ')).map(({ name }) => `'${name}'`)
  const cases = table.map(({ name, options, words }) => {
    const specs = [
      ...options.flatMap(optionSpecs),
      ...words.map((word, index) => `'${index + 1}: :${action(word)}'`),
    ]
    return `    '${name}') _arguments ${specs.join(' ')} ;;`
  })
  return `#compdef orc
# Completion of orc for zsh. In ~/.zshrc, after compinit: source <(orc completion zsh)
_orc() {
  local verb=$words[2]
  local -a verbs=(
${firstWords(table)
  .map(({ name, summary }) => `    '${name}:${quoted(summary)}'`)
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
  const text = `[${quoted(summary).replace(/[[\]:]/g, '\\\\$&')}]${value === undefined ? '' : `: :${action(value)}`}`
  return [`'--${name}${text}'`, ...(short === undefined ? [] : [`'-${short}${text}'`])]
}

function action({ words = [], find }: Offer): string {
  // The leading space makes _arguments call the function without its own options.
  if (find === 'agents') return [' _orc_agents', ...words].join(' ')
  if (find === 'files') return words.length === 0 ? '_files' : `{compadd ${words.join(' ')}; _files}`
  return words.length === 0 ? ' ' : `(${words.join(' ')})`
}

/** Inside single quotes. */
function quoted(text: string): string {
  return text.replaceAll("'", "'\\''")
}
