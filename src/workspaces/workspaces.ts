import { existsSync, mkdirSync, realpathSync, renameSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { AGENT_NAME } from '../base/agent.ts'
import type { PlanInstructions, WorkspaceTemplate } from '../runs/plan.ts'
import { draftInbox, type InputWanted, type OutputsWanted } from './inbox.ts'
import type { Manifest } from './inbox-manifest.ts'
import { fillIn, formatInstructions } from './instructions.ts'
import { type Limits, TEXT_BYTES } from './limits.ts'
import { attempt, errnoOf, failed, type Outcome, type Problem, problem, problemOf } from './problem.ts'
import { allowOwner, openDirectory } from './safe-fs/directory.ts'
import { showName } from './safe-fs/entry-name.ts'
import { startPace } from './safe-fs/pace.ts'
import { readSmall } from './safe-fs/read-file.ts'
import { removeTree } from './safe-fs/remove-tree.ts'
import { replaceFile, temporaryName, writeNew } from './safe-fs/write-file.ts'
import { formatSkill } from './skill.ts'
import { firstStatus } from './status.ts'
import type { Withheld } from './withheld.ts'

export interface WorkspaceWanted {
  /** The folder to be made; its name need not be the agent's. */
  readonly path: string
  readonly name: string
  readonly template: WorkspaceTemplate
  /** What it is there for. */
  readonly objective: string
  readonly hasWorktree?: boolean
  readonly messages?: string
}

/** Makes the folder of S4.1, whole or not at all. The inbox gets its inputs from prepareInbox. */
export async function createWorkspace(wanted: WorkspaceWanted): Promise<Outcome<string>> {
  const { path, name } = wanted
  if (!AGENT_NAME.test(name)) {
    return failed(problem('bad_name', showName(name), 'is not a name for an agent: letters, digits, _ and -'))
  }
  const parent = dirname(path)
  const draft = join(parent, temporaryName(basename(path)))
  try {
    // A rename would replace an empty folder without a word.
    if (existsSync(path)) return failed(problem('exists', path, 'is there already'))
    makeDraft(draft)
    const root = openDirectory(draft, { shown: '' })
    try {
      // Nobody knows the draft yet, so that nothing in it has to appear at once.
      writeNew(root, 'SKILL.md', formatSkill(wanted), 0o444)
      for (const folder of ['inbox', 'outbox', 'workspace']) mkdirSync(root.at(folder), 0o755)
      firstStatus(root)
    } finally {
      root.close()
    }
    renameSync(draft, path)
    return { ok: true, value: path }
  } catch (error) {
    await removeFolder(draft)
    return failed(problemOf(error, path))
  }
}

/** SKILL.md of a workspace that is there already: the plan, or the agent, may have changed it. */
export function renewSkill(wanted: WorkspaceWanted): Promise<Outcome<void>> {
  return attempt('SKILL.md', () => {
    const text = formatSkill(wanted)
    // It is about to be prepared for another attempt, whatever the one before has made of it.
    allowOwner(wanted.path)
    const root = openDirectory(wanted.path, { shown: '' })
    try {
      const found = readSmall(root, 'SKILL.md', TEXT_BYTES)
      if (!found.ok || found.value.toString() !== text) replaceFile(root, 'SKILL.md', text, 0o444)
    } finally {
      root.close()
    }
  })
}

function makeDraft(draft: string): void {
  try {
    mkdirSync(draft, 0o755)
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error
    makeWithParents(dirname(draft))
    mkdirSync(draft, 0o755)
  }
}

/**
 * One by one: with `recursive`, a file system that is read-only is told as a folder that is not there. Gives the first that
 * was not there.
 */
export function makeWithParents(folder: string): string | undefined {
  const above = existsSync(dirname(folder)) ? undefined : makeWithParents(dirname(folder))
  if (existsSync(folder)) return above
  mkdirSync(folder)
  return above ?? folder
}

export interface InboxWanted {
  readonly workspace: string
  /** The title of the instructions. */
  readonly task: string
  readonly instructions: PlanInstructions
  readonly limits: Limits
  readonly inputs?: readonly (InputWanted & { description?: string })[]
  readonly dependencies?: readonly OutputsWanted[]
  /** Files that are never taken from the folders among the inputs. */
  readonly withheld?: () => readonly Withheld[]
  /** A folder of corrected inputs, by their places in the inbox: they replace the original ones. */
  readonly corrections?: Pick<InputWanted, 'path' | 'within'>
  /** Requested deliverables, for the instructions. */
  readonly outputs?: readonly string[]
  /** inbox/dependencies.json (S4.13), already written out. */
  readonly dependenciesFile?: string
  readonly signal?: AbortSignal
}

export interface PreparedInbox {
  readonly manifest: Manifest
  readonly leftOut: readonly Problem[]
}

/** Fills the inbox for a run and replaces the previous one. After a crash, call it again. */
export async function prepareInbox(wanted: InboxWanted): Promise<Outcome<PreparedInbox>> {
  const { workspace, limits, withheld, signal } = wanted
  const { inputs = [], dependencies = [], outputs = [], dependenciesFile } = wanted
  const options = { limits, withheld, ...(signal === undefined ? {} : { signal }) }
  const drafted = await draftInbox(workspace, options)
  if (!drafted.ok) return drafted
  const draft = drafted.value
  const leftOut: Problem[] = []
  try {
    const instructions = fillIn(wanted.instructions, { inputs, dependencies, outputs })
    const texts = new Map([['instructions.md', formatInstructions(wanted.task, instructions)]])
    if (dependenciesFile !== undefined) texts.set('dependencies.json', dependenciesFile)
    for (const [name, text] of texts) {
      const written = await draft.write(name, text)
      if (!written.ok) return written
    }
    if (wanted.corrections !== undefined) {
      const corrected = await draft.addInput({ ...wanted.corrections, to: 'inbox' })
      if (!corrected.ok) return corrected
      draft.prefer()
      leftOut.push(...corrected.value.leftOut)
    }
    for (const input of inputs) {
      const added = await draft.addInput(input)
      if (!added.ok) return added
      leftOut.push(...added.value.leftOut)
    }
    for (const dependency of dependencies) {
      const added = await draft.addOutputs(dependency)
      if (!added.ok) return added
      leftOut.push(...added.value.leftOut)
    }
    const sealed = await draft.seal()
    return sealed.ok ? { ok: true, value: { manifest: sealed.value, leftOut } } : sealed
  } finally {
    await draft.discard()
  }
}

/** Removes a folder with anything that an agent has put there, but nothing that a link leads to. */
export async function removeFolder(path: string, signal?: AbortSignal): Promise<void> {
  if (!existsSync(dirname(path))) return
  // Links above the folder itself are the user's own.
  const parent = openDirectory(realpathSync(dirname(path)))
  try {
    await removeTree(parent, basename(path), startPace(signal))
  } finally {
    parent.close()
  }
}
