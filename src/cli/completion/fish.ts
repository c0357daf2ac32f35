import { type CompletedOption, type CompletedVerb, firstWords, type Offer } from './table.ts'

export function fishScript(table: readonly CompletedVerb[]): string {
  const lines = [
    '# Completion of orc for fish: orc completion fish > ~/.config/fish/completions/orc.fish',
    'complete -c orc -f',
  ]
  for (const { name, summary } of firstWords(table)) {
    lines.push(`complete -c orc -n __fish_use_subcommand -a ${name} -d '${quoted(summary)}'`)
  }
  for (const { name, options, words } of table) {
    const condition = `-n '${seen(name)}'`
    // fish can't count positional words apart from options, so every position offers all of them.
    const actions = new Set(words.map(action).filter((one) => one !== ''))
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
  const flag = `-l ${name}${short === undefined ? '' : ` -s ${short}`} -d '${quoted(summary)}'`
  if (value === undefined) return flag
  const offered = action(value)
  return offered === '' ? `${flag} -x` : `${flag} -r ${offered}`
}

function action({ words = [], find }: Offer): string {
  if (find === 'files') return words.length === 0 ? '-F' : `-F -a '${words.join(' ')}'`
  const agents = find === 'agents' ? ['(orc completion agents 2>/dev/null)'] : []
  const all = [...words, ...agents]
  return all.length === 0 ? '' : `-f -a '${all.join(' ')}'`
}

function quoted(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")
}
