import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { PlanInstructions } from '../../src/runs/plan.ts'
import { DEFAULT_LIMITS, type FileLimits } from '../../src/workspaces/limits.ts'
import type { WorkspaceProblem, WorkspaceResult } from '../../src/workspaces/problem.ts'
import { createWorkspace, prepareInbox } from '../../src/workspaces/workspaces.ts'

/** A folder of its own for one test. */
export function makePlace(within = tmpdir()): string {
  const folder = realpathSync(mkdtempSync(join(within, 'orchub-workspaces-')))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** The content of all files below a folder; links are not followed. */
export function allText(folder: string): string {
  return readdirSync(folder, { withFileTypes: true })
    .map((entry) => {
      if (entry.isDirectory()) return allText(join(folder, entry.name))
      return entry.isFile() ? readFileSync(join(folder, entry.name), 'latin1') : ''
    })
    .filter((text) => text !== '')
    .join('\n')
}

export function write(folder: string, files: Record<string, string | Buffer>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), content)
  }
}

export const instructions: PlanInstructions = {
  objective: 'Find out what it is.',
  context: '',
  inputsProvided: [],
  requirements: [],
  successCriteria: [],
  constraints: [],
  outputExpectations: [],
}

export async function makeWorkspace(name = 'worker', folder = makePlace()): Promise<string> {
  const path = join(folder, name)
  expectOk(await createWorkspace({ path, name, template: 'generic', objective: 'Find out what it is.' }))
  return path
}

export function expectOk<T>(outcome: WorkspaceResult<T>): T {
  if (!outcome.ok) throw new Error(outcome.error.map(({ message }) => message).join('\n'))
  return outcome.value
}

export function problemsOf(outcome: WorkspaceResult<unknown>): readonly WorkspaceProblem[] {
  if (outcome.ok) throw new Error('it was not refused')
  return outcome.error
}

export const codesOf = (outcome: WorkspaceResult<unknown>) => problemsOf(outcome).map(({ code }) => code)

/** Fills the inbox of a workspace from the outbox of another. */
export async function handOver(
  from: string,
  to: string,
  outputs: readonly string[] = ['outbox/**'],
  limits: Partial<FileLimits> = {},
  copyTo = 'inbox/from/',
) {
  const prepared = await prepareInbox({
    workspace: to,
    task: 'a task',
    instructions,
    limits: { ...DEFAULT_LIMITS, ...limits },
    dependencies: [{ workspace: from, agent: 'maker', outputs, copyTo }],
  })
  if (!prepared.ok) return prepared
  const protocol = ['instructions.md', 'references.json']
  const inputs = prepared.value.manifest.inputs.filter(({ path }) => !protocol.includes(path))
  return { ok: true as const, value: { ...prepared.value, inputs } }
}
