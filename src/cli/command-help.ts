import { askType, builtInTypes, type CommandType } from './command-types.ts'
import { paint, plain, print } from './output.ts'
import type { Place } from './place.ts'
import { table } from './table.ts'
import { COMMON_OPTIONS, type Option } from './verb.ts'

/** Help for a command type, read off its schema. */
export async function showCommandHelp(verb: string, type: string, place: Place): Promise<number> {
  const known = (await builtInTypes()).find((one) => one.type === type.toLowerCase())
  print(commandHelp(known ?? (await askType(verb, type, place))))
  return 0
}

/** Options that every command type has in the shell form. */
export const SPOKEN_OPTIONS: readonly Option[] = [
  { name: 'idempotency-key', value: 'KEY', summary: 'the same key acts once, however often it is sent' },
  ...COMMON_OPTIONS,
]

export const NO_ACK: Option = { name: 'no-ack', summary: 'leave the messages unread: they come again' }

function commandHelp(command: CommandType): string {
  const { type, summary, example, body } = command
  const verb = type.replaceAll('_', '-')
  const takesBody = body === undefined ? '' : ` [${body.toUpperCase()}|-]`
  const options = [...fieldOptions(command), ...(type === 'mailbox_check' ? [NO_ACK] : []), ...SPOKEN_OPTIONS]
  return [
    `${paint('bold', 'Usage:')} orc ${verb} [options]${takesBody}`,
    '',
    `${plain(summary)}.`,
    ...(body === undefined ? [] : [`${body.toUpperCase()} is --${body}; - reads it from standard input.`]),
    '',
    paint('bold', 'Options:'),
    optionsText(options),
    '',
    paint('bold', 'Example:'),
    `  ${plain(example)}`,
    '',
    'Speaks as the agent whose token is in ORC_TOKEN, else as the operator. Exit codes: orc help',
  ].join('\n')
}

export function fieldOptions({ schema }: CommandType): Option[] {
  return Object.entries(schema.properties ?? {}).map(([field, { description, enum: choices }]) => {
    const required = schema.required?.includes(field) ? ' (required)' : ''
    return {
      name: field,
      value: choices === undefined ? field.toUpperCase() : choices.join('|'),
      summary: `${plain(description ?? '')}${required}`,
      ...(choices === undefined ? {} : { choices }),
    }
  })
}

export function optionsText(options: readonly Option[]): string {
  return table(
    options.map(({ name, value, short, summary }) => [
      `${short === undefined ? '' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}`,
      summary,
    ]),
    '  ',
  )
}
