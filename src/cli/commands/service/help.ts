import {
  availableTypes,
  builtInTypes,
  type CommandHelp,
  showCommandHelp,
  verbOf,
} from '../../command-types.ts'
import { EXIT_CODES, noSuchCommand, usage } from '../../errors.ts'
import { fitted, table } from '../../output/layout.ts'
import { paint, plainLine, print, printJson } from '../../output/print.ts'
import { type Program, showVerbHelp, usageLine, type Verb } from '../../verb.ts'

/** The verbs that bare `orc` shows: those people use every day. */
const EVERYDAY = [
  ...['init', 'up', 'down', 'status', 'open', 'send', 'inbox', 'approve', 'reject'],
  ...['ask', 'run', 'logs', 'attach', 'why'],
]

export const verb: Verb = {
  name: 'help',
  summary: 'show all commands, or one',
  arguments: [{ name: 'COMMAND', optional: true, rest: true }],
  options: [{ name: 'all', summary: 'show all commands; the default' }],
  details: 'While a service is running here, the list includes the commands that its application adds.',
  examples: ['orc help', 'orc help audit', 'orc audit verify --help', 'orc help --json'],
  async run({ words, program, location, json }) {
    const name = words.join(' ')
    if (name === '') {
      const [all, version] = await Promise.all([program.verbs(), program.version()])
      // Not in parallel: loading the verbs would use up the time that the service has to answer.
      const types = await availableTypes(location)
      if (json) printJson(overviewJson(all, types, version))
      else print(fitted(await overview(all, types, program)))
      return 0
    }
    if (Object.hasOwn(program.nouns, name) && (!json || (await program.find([name])) === undefined))
      return await showNoun(name, json ? ['--json'] : [], program)
    const one = await program.find(words)
    if (one !== undefined) {
      showVerbHelp(one, [], json)
      return 0
    }
    const type = words.length === 2 ? await findCommandOfNoun(words[0]!, words[1]) : undefined
    if (words.length > 1 && type === undefined) throw noSuchCommand(name, 'orc help lists all commands.')
    return await showCommandHelp(type ?? name, (type ?? name).replaceAll('-', '_'), location, json)
  },
}

/** Bare `orc`: one screen of 24 lines by 80 columns. */
export async function showShortHelp(program: Program): Promise<number> {
  const verbs = await program.verbs()
  const everyday = EVERYDAY.map((name) => verbs.find((one) => one.name === name)!)
  print(
    [
      `${paint('bold', `Orchub ${await program.version()}`)}: messages, tasks and rules for a team of AI agents`,
      '',
      table(
        everyday.map((one) => [`orc ${one.name}`, one.summary]),
        '  ',
      ),
      '',
      'More, grouped by noun (orc help NOUN lists the verbs):',
      `  ${Object.keys(program.nouns).join(' ')}`,
      '',
      'orc help lists every command; orc COMMAND --help explains one.',
      'New here? Try orc demo.',
    ].join('\n'),
  )
  return 0
}

/** The built-in command behind a noun and a verb: `agent list` is `list-agents`. */
export async function findCommandOfNoun(
  noun: string,
  second: string | undefined,
): Promise<string | undefined> {
  if (second === undefined || second.startsWith('-')) return undefined
  const type = (await builtInTypes()).find(({ shell }) => shell === `${noun} ${second}`)
  return type === undefined ? undefined : verbOf(type)
}

/** Lists the verbs of a noun (`orc agent`). A further word is an unknown verb, which throws. */
export async function showNoun(noun: string, words: readonly string[], program: Program): Promise<number> {
  const unknown = words.find((word) => !word.startsWith('-'))
  const rows = await nounRows(noun, await program.verbs(), program)
  if (unknown !== undefined) {
    const isId = /^[a-z]+_\d+$/.test(unknown) && rows.some(({ name }) => name === `${noun} show`)
    const name = `${noun} ${unknown}`
    throw isId
      ? usage(`There is no command "${name}"`, `Did you mean ${noun} show? orc ${noun} lists the verbs.`)
      : noSuchCommand(name, `orc ${noun} lists the verbs.`)
  }
  if (words.includes('--json')) {
    printJson({
      noun,
      summary: program.nouns[noun],
      verbs: rows.map(({ name, summary }) => ({ name, summary })),
    })
    return 0
  }
  const bare = program.aliases[noun]
  const lines = [
    `${paint('bold', 'Usage:')} orc ${noun} VERB [options]`,
    '',
    `${upperFirst(program.nouns[noun]!)}.`,
    '',
    table(
      rows.map(({ usage, summary }) => [usage, summary]),
      '  ',
    ),
    '',
    ...(bare === undefined ? [] : [`orc ${noun} without a verb is short for orc ${bare}.`]),
    `orc ${noun} VERB --help shows the options of a verb.`,
  ]
  print(fitted(lines.join('\n')))
  return 0
}

interface HelpRow {
  name: string
  usage: string
  summary: string
}

/** The noun's own verbs, everyday verbs that belong to it, and the built-in commands listed under it. */
async function nounRows(noun: string, verbs: readonly Verb[], program: Program): Promise<HelpRow[]> {
  const isOwn = (name: string) => name === noun || name.startsWith(`${noun} `)
  const borrowed = Object.entries(program.aliases).flatMap(([alias, name]) =>
    alias.startsWith(`${noun} `) && !isOwn(name) ? [name] : [],
  )
  const types = (await builtInTypes()).filter(({ shell }) => shell?.startsWith(`${noun} `))
  return [
    ...verbs.filter(({ name }) => isOwn(name) || borrowed.includes(name)).map(rowOfVerb),
    ...types.map((type) => ({
      name: type.shell!,
      usage: type.shell!,
      summary: `${lowerFirst(plainLine(type.summary))} (orc ${verbOf(type)})`,
    })),
  ]
}

function rowOfVerb(one: Verb): HelpRow {
  const usage = usageLine(one)
    .replace(/^orc /, '')
    .replace(/ \[options\]$/, '')
  return { name: one.name, usage, summary: one.summary }
}

const ENVIRONMENT = [
  ['ORC_TOKEN', 'act as the agent or person with this token; otherwise as the operator'],
  ['ORC_CONFIG', "the team's orc.yaml, like --config"],
  ['ORC_HOME', 'the state folder, instead of .orc beside orc.yaml'],
  ['ORC_URL', 'the address of the service, instead of the one in the state folder'],
  ['NO_COLOR', 'print without colors'],
  ['ORC_DEBUG', 'print a stack trace for internal errors'],
]

async function overview(
  verbs: readonly Verb[],
  types: readonly CommandHelp[],
  program: Program,
): Promise<string> {
  const sections: [title: string, rows: HelpRow[]][] = [
    ['Everyday', EVERYDAY.map((name) => rowOfVerb(verbs.find((one) => one.name === name)!))],
  ]
  for (const noun of Object.keys(program.nouns)) {
    const own = verbs.filter(({ name }) => name.startsWith(`${noun} `)).map(rowOfVerb)
    const title = noun === 'github' ? 'GitHub' : upperFirst(noun)
    sections.push([`${title}: ${program.nouns[noun]}`, own])
  }
  const others = verbs.filter(({ name }) => !name.includes(' ') && !EVERYDAY.includes(name))
  sections.push(['Other', others.map(rowOfVerb)])
  sections.push([
    'Commands of the protocol, in their shell form',
    types.map((type) => ({
      name: verbOf(type),
      usage: verbOf(type),
      summary: lowerFirst(plainLine(type.summary)),
    })),
  ])
  const width = Math.max(...sections.flatMap(([, rows]) => rows.map(({ usage }) => usage.length)))
  const aliases = Object.entries(program.aliases).filter(
    ([alias, name]) => !alias.startsWith('-') && alias !== name.split(' ')[0],
  )
  const section = (title: string, rows: readonly (readonly string[])[]) => [
    '',
    paint('bold', title),
    table(rows, '  '),
  ]
  return [
    `${paint('bold', `Orchub ${await program.version()}`)}: messages, tasks and rules for a team of AI agents`,
    '',
    `${paint('bold', 'Usage:')} orc COMMAND [options]`,
    ...sections.flatMap(([title, rows]) =>
      section(
        title,
        rows.map(({ usage, summary }) => [usage.padEnd(width), summary]),
      ),
    ),
    ...section('Other names', [[aliases.map(([alias, name]) => `${alias} = ${name}`).join(', ')]]),
    '',
    'Every command has --help with its options and examples, --json, and --config FILE.',
    ...section('Environment', ENVIRONMENT),
    ...section(
      'Exit codes',
      Object.values(EXIT_CODES).map(([code, meaning]) => [String(code).padStart(3), meaning]),
    ),
    ...section('Examples', EXAMPLES),
  ].join('\n')
}

const EXAMPLES = [
  ['orc demo', 'watch three scripted agents at work'],
  ['orc init && orc up', 'start a team of the programs installed here'],
  ['orc send Worker "Add 2 and 3"', 'send a message to an agent'],
  ['orc audit --follow', 'follow everything that happens'],
]

function upperFirst(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1)
}

function overviewJson(verbs: readonly Verb[], types: readonly CommandHelp[], version: string) {
  return {
    version,
    commands: [
      ...verbs.map(({ name, summary }) => ({ name, summary })),
      ...types.map((type) => ({ name: verbOf(type), summary: type.summary })),
    ],
    exit_codes: Object.values(EXIT_CODES).map(([code, meaning]) => ({ code, meaning })),
  }
}

export const version: Verb = {
  name: 'version',
  summary: 'print the version of Orchub; also --version',
  examples: ['orc --version'],
  async run({ program, show }) {
    const version = await program.version()
    return show({ version, node: process.versions.node }, () => version)
  },
}
