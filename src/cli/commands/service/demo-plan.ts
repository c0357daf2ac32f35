import { copyFileSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Client } from '../../../client/client.ts'

/** Beside src/ as beside dist/. */
const EXAMPLE = join(import.meta.dirname, '..', '..', '..', '..', 'examples', 'words')

/**
 * The second half of the demo is an example of the package: agents that are shell commands and hand files to each other, one of
 * which needs two attempts. A copy, as a run writes beside its plan. Gives the file, for whoever wants to run it again.
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
