import { readTyped, usageLine } from './args.ts'
import { optionsText } from './command-help.ts'
import { findTeamLocation } from './connection/connection.ts'
import { fitted, table } from './output/layout.ts'
import { paint, print, printJson } from './output/print.ts'
import { COMMON_OPTIONS, type Program, type Verb } from './verb.ts'

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
  // Not wrapped, so that an example can be copied.
  const examples = [
    paint('bold', verb.examples.length === 1 ? 'Example:' : 'Examples:'),
    ...verb.examples.map((example) => `  ${example}`),
  ]
  return [fitted(about), ...examples].join('\n')
}

/** The other verbs of the noun, for the verb that the bare noun runs. */
async function below({ name }: Verb, { verbs, nouns, aliases }: Program): Promise<readonly Verb[]> {
  const [noun = ''] = name.split(' ')
  if (!Object.hasOwn(nouns, noun) || (name !== noun && aliases[noun] !== name)) return []
  return (await verbs(`${noun} `)).filter((one) => one.name !== name)
}

/** Parses the words after a verb and runs it. */
export async function runVerb(verb: Verb, argv: readonly string[], program: Program): Promise<number> {
  const { words, options } = readTyped(verb, argv)
  if (options.has('help')) {
    showVerbHelp(verb, await below(verb, program), options.has('json'))
    return 0
  }
  const option = (name: string) => {
    const value = options.get(name)
    return value === true ? undefined : value
  }
  return await verb.run({
    words,
    json: options.has('json'),
    location: findTeamLocation(option('config')),
    option,
    flag: (name) => options.has(name),
    program,
  })
}
