import { existsSync, mkdirSync, renameSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { AGENT_NAME } from '../base/agent.ts'
import type { PlanInstructions, WorkspaceTemplate } from '../runs/plan.ts'
import { draftInbox, type InputWanted, type OutputsWanted } from './inbox.ts'
import type { InboxManifest } from './inbox-manifest.ts'
import { fillIn, formatInstructions } from './instructions.ts'
import { type FileLimits, TEXT_BYTES } from './limits.ts'
import {
  attempt,
  errnoOf,
  failed,
  problem,
  problemOf,
  type WorkspaceProblem,
  type WorkspaceResult,
} from './problem.ts'
import { allowOwner, openDirectory } from './safe-fs/directory.ts'
import { showName } from './safe-fs/entry-name.ts'
import { readSmall } from './safe-fs/read-file.ts'
import { removeFolder } from './safe-fs/remove-tree.ts'
import type { Withheld } from './safe-fs/select-files.ts'
import { makeFolder, makeWithParents, replaceFile, temporaryName, writeNew } from './safe-fs/write-file.ts'
import { formatSkill } from './skill.ts'
import { firstStatus } from './status.ts'

export { clearAttempt, ERROR_REPORT, keepAttempt } from './attempts.ts'
export { collectCorrections } from './corrections.ts'
export { type OutputsWanted, readInbox, readInboxTexts } from './inbox.ts'
export { checkInbox, type InboxManifest } from './inbox-manifest.ts'
export {
  formatInstructions,
  isExpectedAnyway,
  parseInstructions,
  type ReadInstructions,
} from './instructions.ts'
export type { ProblemCode, WorkspaceProblem, WorkspaceResult } from './problem.ts'
export { type FilePart, readFilePart } from './safe-fs/read-file.ts'
export { removeFolder } from './safe-fs/remove-tree.ts'
export { isWithin, type Withheld } from './safe-fs/select-files.ts'

export interface WorkspaceWanted {
  /** The folder to be made; its name need not be the agent's. */
  readonly path: string
  readonly name: string
  readonly template: WorkspaceTemplate
  /** Purpose of the agent. */
  readonly objective: string
  readonly hasWorktree?: boolean
  readonly messages?: string
}

/** Makes the folder of S4.1, whole or not at all. The inbox gets its inputs from prepareInbox. */
export async function createWorkspace(wanted: WorkspaceWanted): Promise<WorkspaceResult<string>> {
  const { path, name } = wanted
  if (!AGENT_NAME.test(name)) {
    return failed(
      problem('bad_name', showName(name), 'is not a valid agent name: use letters, digits, _ and -'),
    )
  }
  const parent = dirname(path)
  const draft = join(parent, temporaryName(basename(path)))
  try {
    // A rename would replace an empty folder without a word.
    if (existsSync(path)) return failed(problem('exists', path, 'already exists'))
    makeDraft(draft)
    const root = openDirectory(draft, { shown: '' })
    try {
      // The draft is still hidden, so files in it need not appear atomically.
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
export function renewSkill(wanted: WorkspaceWanted): Promise<WorkspaceResult<void>> {
  return attempt('SKILL.md', () => {
    const text = formatSkill(wanted)
    // The previous attempt may have removed the owner's permissions.
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

interface InboxWanted {
  readonly workspace: string
  /** The title of the instructions. */
  readonly task: string
  readonly instructions: PlanInstructions
  readonly limits?: FileLimits
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

interface PreparedInbox {
  readonly manifest: InboxManifest
  readonly leftOut: readonly WorkspaceProblem[]
}

/** Fills the inbox for a run and replaces the previous one. After a crash, call it again. */
export async function prepareInbox(wanted: InboxWanted): Promise<WorkspaceResult<PreparedInbox>> {
  const { workspace, withheld, signal } = wanted
  const { inputs = [], dependencies = [], outputs = [], dependenciesFile } = wanted
  const options = {
    ...(wanted.limits === undefined ? {} : { limits: wanted.limits }),
    withheld,
    ...(signal === undefined ? {} : { signal }),
  }
  const drafted = await draftInbox(workspace, options)
  if (!drafted.ok) return drafted
  const draft = drafted.value
  const leftOut: WorkspaceProblem[] = []
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

/** Writes files into a folder to which agents can write, each of them atomically. Makes the folder if it is missing. */
export function replaceFiles(
  folder: string,
  files: Readonly<Record<string, string>>,
  shown: string = folder,
): Promise<WorkspaceResult<void>> {
  return attempt(shown, () => {
    mkdirSync(folder, { recursive: true })
    const directory = openDirectory(folder)
    try {
      for (const [name, text] of Object.entries(files)) replaceFile(directory, name, text, 0o644)
    } finally {
      directory.close()
    }
  })
}

/** Makes a folder inside another one if it is missing. Throws if an agent has put a link in its place. */
export function makeFolderIn(parent: string, name: string): void {
  const root = openDirectory(parent, { shown: '' })
  try {
    makeFolder(root, name).close()
  } finally {
    root.close()
  }
}
