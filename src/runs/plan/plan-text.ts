import { stringify } from 'yaml'
import type { PlanInput } from './schema.ts'

/** A plan as a person would write it, for editing. */
export function planText(input: PlanInput): string {
  const { name, goal, concurrency, timeout, ask_timeout, messages, agents, fixers } = input
  const ordered = { name, goal, concurrency, timeout, ask_timeout, messages, agents, fixers }
  const written = Object.fromEntries(Object.entries(ordered).filter(([, value]) => value !== undefined))
  const text = stringify(written, { lineWidth: 110, aliasDuplicateObjects: false })
  return `# yaml-language-server: $schema=./node_modules/orchub/plan.schema.json\n${text}`
}
