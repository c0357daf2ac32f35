import { askType, builtInTypes, type CommandType, verbOf } from './command-types.ts'
import type { TeamLocation } from './connection/team-location.ts'
import { dashed } from './errors.ts'
import { fitted, table } from './output/layout.ts'
import { paint, plain, plainLine, print, printJson } from './output/print.ts'
import { COMMON_OPTIONS, type Option } from './verb.ts'

/** Help for a command type, read off its schema. */
export async function showCommandHelp(
  verb: string,
  type: string,
  location: TeamLocation,
  json: boolean,
): Promise<number> {
  const known = (await builtInTypes()).find((one) => one.type === type.toLowerCase())
  const command = known ?? (await askType(verb, type, location))
  if (json) printJson({ name: verbOf(command), ...command })
  else print(commandHelp(command))
  return 0
}

/** Options that every command type has in the shell form. */
export const SPOKEN_OPTIONS: readonly Option[] = [
  { name: 'idempotency-key', value: 'KEY', summary: 'the same key acts once, however often it is sent' },
  ...COMMON_OPTIONS,
]

export const NO_ACK: Option = {
  name: 'no-ack',
  summary: 'do not confirm the messages: they come again after 30 s',
}

function commandHelp(command: CommandType): string {
  const { type, summary, example, body } = command
  const takesBody = body === undefined ? '' : ` [${body.toUpperCase()}|-]`
  const options = [...fieldOptions(command), ...(type === 'mailbox_check' ? [NO_ACK] : []), ...SPOKEN_OPTIONS]
  return [
    `${paint('bold', 'Usage:')} orc ${verbOf(command)} [options]${takesBody}`,
    '',
    fitted(`${plain(summary)}.`),
    ...(body === undefined
      ? []
      : [`${body.toUpperCase()} is --${dashed(body)}; - reads it from standard input.`]),
    '',
    paint('bold', 'Options:'),
    fitted(optionsText(options)),
    '',
    paint('bold', 'Example:'),
    // Options are shown in one form throughout, whichever the definition has.
    `  ${plain(example).replace(/(?<=\s)--[a-z]\w*/g, dashed)}`,
    '',
    fitted('Speaks as the agent whose token is in ORC_TOKEN, else as the operator. Exit codes: orc help'),
  ].join('\n')
}

/** Longer lists of values would push the text of all options to the right. */
const LONGEST_VALUE = 24

export function fieldOptions({ schema }: CommandType): Option[] {
  return Object.entries(schema.properties ?? {}).map(([field, { description, enum: choices }]) => {
    const required = schema.required?.includes(field) ? ' (required)' : ''
    const list = choices?.join('|') ?? ''
    return {
      name: dashed(field),
      value: list === '' || list.length > LONGEST_VALUE ? field.toUpperCase() : list,
      summary: `${plain(description ?? '')}${required}`,
      ...(choices === undefined ? {} : { choices }),
    }
  })
}

export function optionsText(options: readonly Option[]): string {
  return table(options.flatMap(optionRows), '  ')
}

/** Values that neither the name of the value nor the summary tells stand on a line of their own. */
function optionRows({ name, value, short, summary, choices = [] }: Option): string[][] {
  const shown = value === undefined ? '' : ` ${value}`
  const row = [`${short === undefined ? '' : `-${short}, `}--${name}${shown}`, summary]
  const isTold = choices.every((choice) => summary.includes(choice)) || value === choices.join('|')
  return isTold ? [row] : [row, ['', `one of: ${plainLine(choices.join(', '))}`]]
}
