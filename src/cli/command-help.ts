import { askType, builtInTypes, type CommandHelp, verbOf } from './command-types.ts'
import type { TeamLocation } from './connection/team-location.ts'
import { dashed } from './errors.ts'
import { fitted, table } from './output/layout.ts'
import { paint, plain, plainLine, print, printJson } from './output/print.ts'
import { COMMON_OPTIONS, type Option } from './verb.ts'

/** Prints the help of a command type, derived from its schema. */
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
export const COMMAND_OPTIONS: readonly Option[] = [
  { name: 'idempotency-key', value: 'KEY', summary: 'sent again with the same key, the command runs once' },
  ...COMMON_OPTIONS,
]

export const NO_ACK: Option = {
  name: 'no-ack',
  summary: 'do not acknowledge the messages; they are delivered again after 30 s',
}

function commandHelp(command: CommandHelp): string {
  const { type, summary, example, body } = command
  const takesBody = body === undefined ? '' : ` [${body.toUpperCase()}|-]`
  const options = [
    ...fieldOptions(command),
    ...(type === 'mailbox_check' ? [NO_ACK] : []),
    ...COMMAND_OPTIONS,
  ]
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
    // Definitions may write in_reply_to; help shows dashes everywhere.
    `  ${plain(example).replace(/(?<=\s)--[a-z]\w*/g, dashed)}`,
    '',
    fitted('Sent as the agent whose token is in ORC_TOKEN, otherwise as the operator. Exit codes: orc help'),
  ].join('\n')
}

/** A longer list of values would push the summaries of all options to the right. */
const LONGEST_VALUE = 24

export function fieldOptions({ schema }: CommandHelp): Option[] {
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

/** Choices get a line of their own unless the value or the summary already lists them. */
function optionRows({ name, value, short, summary, choices = [] }: Option): string[][] {
  const shown = value === undefined ? '' : ` ${value}`
  const row = [`${short === undefined ? '' : `-${short}, `}--${name}${shown}`, summary]
  const areListed = choices.every((choice) => summary.includes(choice)) || value === choices.join('|')
  return areListed ? [row] : [row, ['', `one of: ${plainLine(choices.join(', '))}`]]
}
