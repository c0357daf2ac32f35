/** The folder of an agent (S4.1): creating it, and preparing it for another attempt. Also the contract of this room. */
import { existsSync, mkdirSync, renameSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { AGENT_NAME } from '../base/agent.ts'
import type { WorkspaceTemplate } from '../runs/plan.ts'
import { TEXT_BYTES } from './limits.ts'
import { attempt, errnoOf, failed, problem, problemOf, type WorkspaceResult } from './problem.ts'
import {
  allowOwner,
  type Directory,
  listNames,
  lookAt,
  openDirectory,
  openFolder,
  showName,
} from './safe-fs/directory.ts'
import {
  makeFolder,
  makeWithParents,
  readSmall,
  replaceFile,
  temporaryName,
  writeNew,
} from './safe-fs/files.ts'
import { removeFolder, removeTree } from './safe-fs/remove-tree.ts'
import { formatSkill } from './skill-and-instructions.ts'
import { firstStatus, resetStatus, STATUS_FILE } from './status.ts'

export { collectCorrections } from './corrections.ts'
export {
  checkInbox,
  type InboxManifest,
  type OutputsWanted,
  PROTOCOL_FILES,
  prepareInbox,
} from './inbox.ts'
export { readInbox, readInboxTexts } from './inbox-text.ts'
export { ERROR_REPORT } from './outbox.ts'
export { nameProblems, type ProblemCode, type WorkspaceProblem, type WorkspaceResult } from './problem.ts'
export { type FilePart, readFilePart } from './safe-fs/files.ts'
export { removeFolder } from './safe-fs/remove-tree.ts'
export { isWithin, type Withheld } from './safe-fs/select-files.ts'
export {
  formatInstructions,
  isExpectedAnyway,
  parseInstructions,
  type ReadInstructions,
} from './skill-and-instructions.ts'

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

/** Makes the folder of S4.1, whole or not at all, but without its inbox: prepareInbox comes next and makes that, filled. */
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
    // A rename would silently replace an empty folder.
    if (existsSync(path)) return failed(problem('exists', path, 'already exists'))
    makeDraft(draft)
    using root = openDirectory(draft, { shown: '' })
    // The draft is still hidden, so files in it need not appear atomically.
    writeNew(root, 'SKILL.md', formatSkill(wanted), 0o444)
    for (const folder of ['outbox', 'workspace']) mkdirSync(root.at(folder), 0o755)
    firstStatus(root)
    renameSync(draft, path)
    return { ok: true, value: path }
  } catch (error) {
    await removeFolder(draft)
    return failed(problemOf(error, path))
  }
}

/** Rewrites SKILL.md in an existing workspace if the plan, or the agent, has changed it. */
export function renewSkill(wanted: WorkspaceWanted): Promise<WorkspaceResult<void>> {
  return attempt('SKILL.md', () => {
    const text = formatSkill(wanted)
    // The previous attempt may have removed the owner's permissions.
    allowOwner(wanted.path)
    using root = openDirectory(wanted.path, { shown: '' })
    const found = readSmall(root, 'SKILL.md', TEXT_BYTES)
    if (!found.ok || found.value.toString() !== text) replaceFile(root, 'SKILL.md', text, 0o444)
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

export const ATTEMPTS = 'attempts'
/** Says in attempts/N/ why the attempt failed. */
export const WHY = 'why.md'

/**
 * Prepares the next attempt (S4.12): renames the outbox, with error_report.md and partial/, and status.json into
 * attempts/N/, so that nothing in them is read or lost. workspace/ stays. Idempotent.
 */
export function keepAttempt(workspace: string, number: number, why = ''): Promise<WorkspaceResult<void>> {
  return attempt(`${ATTEMPTS}/${number}`, () => {
    using root = openWritable(workspace)
    using folder = folderFor(root, number)
    move(root, folder, 'outbox')
    move(root, folder, STATUS_FILE)
    // Tells the next attempt why this one failed.
    if (why !== '') replaceFile(folder, WHY, `${why}\n`, 0o644)
    makeFolder(root, 'outbox').close()
    resetStatus(root)
  })
}

/** Prepares an attempt that starts again from the beginning: deletes what its earlier start left behind. */
export function clearAttempt(workspace: string): Promise<WorkspaceResult<void>> {
  return attempt('outbox', async () => {
    using root = openWritable(workspace)
    if (!isEmptyFolder(root, 'outbox')) {
      await removeTree(root, 'outbox')
      makeFolder(root, 'outbox').close()
    }
    resetStatus(root)
  })
}

function isEmptyFolder(root: Directory, name: string): boolean {
  allowOwner(root.at(name))
  const opened = openFolder(root, name)
  if (!opened.ok) return false
  using folder = opened.value
  return listNames(folder, 1).length === 0
}

/** An agent may have removed the permissions of its own folders. */
function openWritable(workspace: string): Directory {
  allowOwner(workspace)
  return openDirectory(workspace, { shown: '' })
}

function folderFor(root: Directory, number: number): Directory {
  allowOwner(root.at(ATTEMPTS))
  using attempts = makeFolder(root, ATTEMPTS)
  allowOwner(attempts.at(String(number)))
  return makeFolder(attempts, String(number))
}

function move(from: Directory, to: Directory, name: string): void {
  if (lookAt(to, name) === undefined && lookAt(from, name) !== undefined) {
    // A folder must be writable itself to be moved: its `..` changes.
    allowOwner(from.at(name))
    renameSync(from.at(name), to.at(name))
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
    using directory = openDirectory(folder)
    for (const [name, text] of Object.entries(files)) replaceFile(directory, name, text, 0o644)
  })
}

/** Makes a folder inside another one if it is missing. Throws if an agent has put a link in its place. */
export function makeFolderIn(parent: string, name: string): void {
  using root = openDirectory(parent, { shown: '' })
  makeFolder(root, name).close()
}
