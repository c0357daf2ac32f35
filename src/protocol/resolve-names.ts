/** Resolves the names that an agent wrote to those of the command table, the same way in every notation (S0.4). */
import { brief, type CommandShape, type KnownCommands, type ScanProblem, scanProblem } from './codec.ts'

/** The command with the written type. */
export function commandNamed(
  written: string,
  known: KnownCommands,
): { ok: true; shape: CommandShape } | ScanProblem {
  // Most types are written as in the table, so the plain lookup comes first.
  const shape = known(written) ?? known(plain(written))
  if (shape !== undefined) return { ok: true, shape }
  const type = written.trim()
  return type === '' ? missingType() : unknownCommand(type, known)
}

/** The parameter with the written name; undefined if the command has no such parameter. */
export function fieldNamed(written: string, shape: CommandShape): string | undefined {
  if (shape.fields.has(written)) return written
  const field = written.toLowerCase()
  if (shape.fields.has(field)) return field
  const underscored = field.replaceAll('-', '_')
  return shape.fields.has(underscored) ? underscored : undefined
}

/**
 * Returns which of `name` and `type` holds the command's type. Both mean the same (S0.4), unless the command that one of
 * them names has a parameter called like the other.
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
    "The command's name and type differ",
    "Give the command's type once, either as name or as type.",
  )
}

function plain(written: string): string {
  return written.trim().toLowerCase()
}

export function missingType(): ScanProblem {
  return scanProblem(
    'MISSING_TYPE',
    'The command has no type',
    'Add it, as in <orc-command name="mailbox_check"></orc-command> or {"orc_command": {"type": "mailbox_check"}}.',
  )
}

export function duplicateName(name: string): ScanProblem {
  return scanProblem(
    'NOT_WELL_FORMED',
    `The command contains "${brief(name)}" twice`,
    'Give each parameter only once.',
  )
}

function unknownCommand(written: string, known: KnownCommands): ScanProblem {
  const near = /[-\s]/.test(written) ? known(written.toLowerCase().replaceAll(/[-\s]+/g, '_')) : undefined
  const hint =
    near === undefined ? 'Use one of the command types in your instructions.' : `Did you mean ${near.type}?`
  return scanProblem('UNKNOWN_COMMAND', `Unknown command type: ${brief(written)}`, hint)
}
