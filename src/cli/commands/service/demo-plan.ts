import { copyFileSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Client } from '../../../client/client.ts'

/** The same relative path from src/ and from dist/. */
const EXAMPLE = join(import.meta.dirname, '..', '..', '..', '..', 'examples', 'words')

/**
 * Starts the second half of the demo: shell commands as agents that hand files to each other, one of which needs two
 * attempts. Copies the example, because a run writes beside its plan. Returns the path of the plan.
 */
export async function startDemoPlan(client: Client, stateFolder: string): Promise<string> {
  const folder = join(stateFolder, 'plan')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  for (const entry of readdirSync(EXAMPLE, { withFileTypes: true })) {
    if (entry.isFile()) copyFileSync(join(EXAMPLE, entry.name), join(folder, entry.name))
  }
  const file = join(folder, 'plan.yaml')
  await client.startRun({ plan: readFileSync(file, 'utf8'), folder })
  return file
}
