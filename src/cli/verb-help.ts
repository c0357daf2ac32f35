import { usageLine } from './args.ts'
import { optionsText } from './command-help.ts'
import { table } from './output/layout.ts'
import { paint, print, printJson } from './output/print.ts'
import { fitted } from './output/wrap.ts'
import { COMMON_OPTIONS, type Verb } from './verb.ts'

export function showVerbHelp(verb: Verb, below: readonly Verb[], json: boolean): void {
  if (json) printJson(verbFacts(verb))
  else print(verbHelp(verb, below))
}

function verbFacts(verb: Verb) {
  const { run: _, ...facts } = verb
  return { ...facts, options: [...(verb.options ?? []), ...COMMON_OPTIONS], usage: usageLine(verb) }
}

function verbHelp(verb: Verb, below: readonly Verb[]): string {
  const about = [
    `${paint('bold', 'Usage:')} ${usageLine(verb)}`,
    '',
    `${verb.summary.charAt(0).toUpperCase()}${verb.summary.slice(1)}.`,
    ...(verb.details === undefined ? [] : ['', verb.details]),
    ...(below.length === 0
      ? []
      : [
          '',
          paint('bold', 'Also:'),
          table(
            below.map((one) => [usageLine(one), one.summary]),
            '  ',
          ),
        ]),
    '',
    paint('bold', 'Options:'),
    optionsText([...(verb.options ?? []), ...COMMON_OPTIONS]),
    '',
  ].join('\n')
  // An example is copied, so that it stays in one piece.
  const examples = [
    paint('bold', verb.examples.length === 1 ? 'Example:' : 'Examples:'),
    ...verb.examples.map((example) => `  ${example}`),
  ]
  return [fitted(about), ...examples].join('\n')
}
