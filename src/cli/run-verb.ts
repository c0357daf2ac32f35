import { readTyped } from './args.ts'
import { findPlace } from './connection/connection.ts'
import type { Program, Verb } from './verb.ts'
import { showVerbHelp } from './verb-help.ts'

/** Reads what was typed after a verb and runs it. */
export async function runVerb(verb: Verb, argv: readonly string[], program: Program): Promise<number> {
  const { words, options } = readTyped(verb, argv)
  if (options.has('help')) {
    showVerbHelp(verb, await program.verbs(`${verb.name} `), options.has('json'))
    return 0
  }
  const option = (name: string) => {
    const value = options.get(name)
    return value === true ? undefined : value
  }
  return await verb.run({
    words,
    json: options.has('json'),
    place: findPlace(option('config')),
    option,
    flag: (name) => options.has(name),
    program,
  })
}
