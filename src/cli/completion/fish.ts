import { type CompletedOption, type CompletedVerb, firstWords, type Offer } from './table.ts'

export function fishScript(table: readonly CompletedVerb[]): string {
  const lines = [
    '# Completion of orc for fish: orc completion fish > ~/.config/fish/completions/orc.fish',
    'complete -c orc -f',
  ]
  for (const { name, summary } of firstWords(table)) {
    lines.push(`complete -c orc -n __fish_use_subcommand -a ${name} -d '${quoted(summary)}'`)
  }
  for (const { name, options, argument } of table) {
    const condition = `-n '${seen(name)}'`
    if (argument !== 'nothing') lines.push(`complete -c orc ${condition} ${action(argument)}`)
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
  const flag = `-l ${name}${short === undefined ? '' : ` -s ${short}`} -d '${quoted(summary)}'`
  if (value === undefined) return flag
  return value === 'nothing' ? `${flag} -x` : `${flag} -r ${action(value)}`
}

function action(offer: Offer): string {
  if (offer === 'agents') return "-f -a '(orc completion agents 2>/dev/null)'"
  if (offer === 'files') return '-F'
  return offer === 'nothing' ? '' : `-f -a '${offer.words.join(' ')}'`
}

function quoted(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")
}
