/** From said names to the command table's own, the same way in every notation (S0.4). */
import { brief, type CommandShape, type KnownCommands, type ScanProblem, scanProblem } from './codec.ts'

/** The command of a said type. */
export function commandNamed(
  said: string,
  known: KnownCommands,
): { ok: true; shape: CommandShape } | ScanProblem {
  // Most say it as it is written in the table: looking there is quicker than making sure.
  const shape = known(said) ?? known(plain(said))
  if (shape !== undefined) return { ok: true, shape }
  const type = said.trim()
  return type === '' ? missingType() : unknownCommand(type, known)
}

/** The parameter of a said name, or undefined if the command has none such. */
export function fieldNamed(said: string, shape: CommandShape): string | undefined {
  if (shape.fields.has(said)) return said
  const field = said.toLowerCase()
  if (shape.fields.has(field)) return field
  const underscored = field.replaceAll('-', '_')
  return shape.fields.has(underscored) ? underscored : undefined
}

/**
 * `name` and `type` mean the same (S0.4), unless the command named by one has a parameter called like the other. Says
 * which of the two names the command.
 */
export function chooseName(
  name: string | undefined,
  type: string | undefined,
  known: KnownCommands,
): { ok: true; key: 'name' | 'type' | undefined } | ScanProblem {
  if (name === undefined) return { ok: true, key: type === undefined ? undefined : 'type' }
  if (type === undefined || plain(name) === plain(type)) return { ok: true, key: 'name' }
  if (known(plain(type))?.fields.has('name')) return { ok: true, key: 'type' }
  if (known(plain(name))?.fields.has('type')) return { ok: true, key: 'name' }
  return scanProblem(
    'NOT_WELL_FORMED',
    'The command has a name and a type that differ',
    "Say the command's type once: either as its name or as its type.",
  )
}

function plain(said: string): string {
  return said.trim().toLowerCase()
}

export function missingType(): ScanProblem {
  return scanProblem(
    'MISSING_TYPE',
    'The command does not say its type',
    'Say it, as in <orc-command name="mailbox_check"></orc-command> or {"orc_command": {"type": "mailbox_check"}}.',
  )
}

export function saidTwice(name: string): ScanProblem {
  return scanProblem(
    'NOT_WELL_FORMED',
    `The command says "${brief(name)}" twice`,
    'Say every parameter once.',
  )
}

function unknownCommand(said: string, known: KnownCommands): ScanProblem {
  const near = /[-\s]/.test(said) ? known(said.toLowerCase().replaceAll(/[-\s]+/g, '_')) : undefined
  const hint =
    near === undefined ? 'Use one of the command types you were told about.' : `Did you mean ${near.type}?`
  return scanProblem('UNKNOWN_COMMAND', `Unknown command type: ${brief(said)}`, hint)
}
