import type { Locate, Path } from '../yaml/problem.ts'
import type { ConfigInput } from './schema.ts'

/** Maps rules and permissions to their lines in orc.yaml, so that explanations can name the line. */
export function decidingLines(input: ConfigInput, locate: Locate): Record<string, number> {
  const lines: Record<string, number> = {}
  function note(path: Path, key: string): void {
    const { line } = locate(path, 'key')
    if (line > 0) lines[key] = line
  }
  for (const list of ['allow', 'forbid', 'ask'] as const) {
    for (const index of (input.rules?.[list] ?? []).keys())
      note(['rules', list, index], `rules.${list}[${index}]`)
  }
  if (input.rules?.preset !== undefined) note(['rules', 'preset'], 'rules.preset')
  for (const action of Object.keys(input.permissions ?? {}))
    note(['permissions', action], `permissions.${action}`)
  for (const [name, agent] of Object.entries(input.agents)) {
    if (agent?.send !== undefined) note(['agents', name, 'send'], `agents.${name}.send`)
    if (agent?.receive !== undefined) note(['agents', name, 'receive'], `agents.${name}.receive`)
    for (const action of Object.keys(agent?.permissions ?? {})) {
      note(['agents', name, 'permissions', action], `agents.${name}.permissions.${action}`)
    }
  }
  return lines
}
