import { AppError } from '../../../model/errors.ts'
import { usageLine } from '../../args.ts'
import { showCommandHelp } from '../../command-help.ts'
import { type CommandType, typesHere, verbOf } from '../../command-types.ts'
import { EXIT_CODES } from '../../exit-code.ts'
import { fitted, table } from '../../output/layout.ts'
import { paint, plainLine, print, printJson } from '../../output/print.ts'
import { showVerbHelp } from '../../run-verb.ts'
import { GROUPS, type Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'help',
  group: 'Tools',
  summary: 'show all of this, or one command',
  arguments: [{ name: 'COMMAND', optional: true, rest: true }],
  details: 'While a service runs here, the commands that its application adds are among them.',
  examples: ['orc help', 'orc help audit', 'orc audit verify --help', 'orc help --json'],
  async run({ words, program, place, json }) {
    const name = words.join(' ')
    if (name === '') {
      const [all, version, types] = await Promise.all([program.verbs(), program.version(), typesHere(place)])
      if (json) printJson(overviewJson(all, types, version))
      else print(fitted(overview(all, types, version)))
      return 0
    }
    const one = (await program.verbs(name)).find((verb) => verb.name === name)
    if (one !== undefined) {
      showVerbHelp(one, await program.verbs(`${name} `), json)
      return 0
    }
    if (words.length > 1)
      throw new AppError('USAGE', `There is no command "${name}"`, { hint: 'orc help lists them all.' })
    return await showCommandHelp(name, name.replaceAll('-', '_'), place, json)
  },
}

const ENVIRONMENT = [
  ['ORC_TOKEN', 'speak as the agent whose token this is; without it, as the operator'],
  ['ORC_CONFIG', 'the orc.yaml of the team, as --config'],
  ['ORC_HOME', 'the folder of the state, instead of .orc beside orc.yaml'],
  ['ORC_URL', 'the address of the service, instead of what it noted in that folder'],
  ['NO_COLOR', 'no colours'],
  ['ORC_DEBUG', 'say where a fault of Orchub itself came from'],
]

function overview(verbs: readonly Verb[], types: readonly CommandType[], version: string): string {
  const lines = [`${paint('bold', `Orchub ${version}`)}: the switchboard for a team of AI agents`, '']
  lines.push(`${paint('bold', 'Usage:')} orc COMMAND [options]`, '')
  const width = Math.max(...verbs.map((verb) => shortUsage(verb).length))
  for (const group of GROUPS) {
    const rows = verbs.filter((verb) => verb.group === group).map((verb) => [shortUsage(verb), verb.summary])
    if (group === 'Talk')
      rows.push(...types.map((type) => [verbOf(type), lowerFirst(plainLine(type.summary))]))
    lines.push(
      paint('bold', group),
      table(
        rows.map(([name, summary]) => [name!.padEnd(width), summary!]),
        '  ',
      ),
      '',
    )
  }
  lines.push(
    'Every command has --help with its options and examples, --json, and --config FILE.',
    '',
    paint('bold', 'Environment'),
    table(ENVIRONMENT, '  '),
    '',
    paint('bold', 'Exit codes'),
    table(
      Object.values(EXIT_CODES).map(([code, meaning]) => [String(code).padStart(3), meaning]),
      '  ',
    ),
    '',
    paint('bold', 'Examples'),
    '  orc demo                                                 three scripted agents at work',
    '  orc init && orc up                                       a team of the agent programs installed here',
    '  orc serve                                                the service for the orc.yaml here',
    '  orc send-message --from Master --to Worker "Add 2 and 3" a message into a mailbox',
    '  orc audit --follow                                       all that happens, as it happens',
  )
  return lines.join('\n')
}

function shortUsage(verb: Verb): string {
  return usageLine(verb)
    .replace(/^orc /, '')
    .replace(/ \[options\]$/, '')
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1)
}

function overviewJson(verbs: readonly Verb[], types: readonly CommandType[], version: string) {
  return {
    version,
    commands: [
      ...verbs.map(({ name, summary }) => ({ name, summary })),
      ...types.map((type) => ({ name: verbOf(type), summary: type.summary })),
    ],
    exit_codes: Object.values(EXIT_CODES).map(([code, meaning]) => ({ code, meaning })),
  }
}
