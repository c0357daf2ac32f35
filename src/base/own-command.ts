import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** Our own command, for agents and their hooks: the script of a clone, or the installed program. */
export function ownCommand(): string {
  const root = join(import.meta.dirname, '..', '..')
  const script = join(root, 'orc')
  return existsSync(script) ? script : join(root, 'bin', 'orc.js')
}
