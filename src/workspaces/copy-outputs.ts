import { closeSync, mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { makeWithParents, removeFolder } from './folder.ts'
import type { Limits } from './limits.ts'
import { attempt, errnoOf, type Outcome, type Problem, ProblemError, problemOf } from './problem.ts'
import { readContent } from './safe-fs/content.ts'
import { type Directory, openDirectory, openFolder, openPart } from './safe-fs/directory.ts'
import { startPace } from './safe-fs/pace.ts'
import { removeTree } from './safe-fs/removal.ts'
import { checkSize, openFound, selectFiles } from './safe-fs/selection.ts'
import { createFile, makeFolders, temporaryName } from './safe-fs/writing.ts'

export interface CopyOptions {
  readonly limits: Limits
  readonly signal?: AbortSignal
  /** If given, large files stay where they are and are reported here (C21). */
  readonly stays?: (path: string) => void
  /** Called for each copied file. */
  readonly copied?: (path: string, sha256: string) => void
  /** Selects the files to copy; all if not given. */
  readonly takes?: (path: string) => boolean
}

/** A folder to create in a place where agents can write, too. */
export interface NewFolder {
  readonly parent: Directory
  readonly name: string
}

type OpenTarget = () => Directory | Promise<Directory>

/** Copies the outputs of an agent, large ones too, into an empty folder of the user's. Returns what was left out. */
function copyOutbox(
  workspace: string,
  to: string,
  options: CopyOptions,
): Promise<Outcome<readonly Problem[]>> {
  return attempt(to, () => copyFrom(workspace, options, () => openDirectory(to)))
}

export interface AgentFolder {
  readonly name: string
  readonly workspace: string
}

/**
 * Copies the outputs of several agents to new folders `{to}/{agent}`: of all agents, or of none. Returns what was left out of
 * each.
 */
export function copySideBySide(
  agents: readonly AgentFolder[],
  to: string,
  options: Pick<CopyOptions, 'limits' | 'signal'>,
): Promise<Outcome<readonly (readonly Problem[])[]>> {
  return attempt(to, async () => {
    const made: string[] = []
    try {
      const first = makeWithParents(to)
      if (first !== undefined) made.push(first)
      // Before anything is copied: a folder that exists already holds something else.
      for (const { name } of agents) {
        const target = join(to, name)
        try {
          mkdirSync(target)
        } catch (error) {
          throw new ProblemError(problemOf(error, target))
        }
        made.push(target)
      }
      const leftOut: (readonly Problem[])[] = []
      for (const { name, workspace } of agents) {
        const target = join(to, name)
        const copied = await copyOutbox(workspace, target, options)
        if (!copied.ok) throw new ProblemError(copied.problems[0]!)
        leftOut.push(copied.value)
      }
      return leftOut
    } catch (error) {
      for (const folder of made.toReversed()) await removeFolder(folder)
      throw error
    }
  })
}

/** Copies the outputs of an agent into a new folder, which appears complete or not at all. */
export function keepOutbox(
  workspace: string,
  to: NewFolder,
  options: CopyOptions,
): Promise<Outcome<readonly Problem[]>> {
  return wholeOrNothing(to, (openTarget) => copyFrom(workspace, options, openTarget))
}

/** Fills a hidden folder and renames it, so that no part of it passes for the whole, even after a crash. A failure leaves nothing. */
function wholeOrNothing<T>(to: NewFolder, fill: (openTarget: OpenTarget) => Promise<T>): Promise<Outcome<T>> {
  const { parent, name } = to
  const draft = temporaryName(name)
  return attempt(name, async () => {
    try {
      const filled = await fill(() => makeDraft(parent, draft))
      await putInPlace(to, draft)
      return filled
    } catch (error) {
      for (const left of [draft, name]) await removeTree(parent, left, startPace())
      throw error
    }
  })
}

async function makeDraft(parent: Directory, draft: string): Promise<Directory> {
  try {
    mkdirSync(parent.at(draft), 0o755)
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw error
    await removeTree(parent, draft, startPace())
    mkdirSync(parent.at(draft), 0o755)
  }
  const opened = openFolder(parent, draft)
  if (!opened.ok) throw new ProblemError(opened.problem)
  return opened.value
}

const IS_TAKEN: ReadonlySet<string> = new Set(['EEXIST', 'ENOTEMPTY', 'ENOTDIR'])

/** Replaces anything that an agent has put there. */
async function putInPlace({ parent, name }: NewFolder, draft: string): Promise<void> {
  try {
    renameSync(parent.at(draft), parent.at(name))
  } catch (error) {
    if (!IS_TAKEN.has(errnoOf(error) ?? '')) throw error
    await removeTree(parent, name, startPace())
    renameSync(parent.at(draft), parent.at(name))
  }
}

async function copyFrom(
  workspace: string,
  options: CopyOptions,
  openTarget: OpenTarget,
): Promise<readonly Problem[]> {
  const outbox = openPart(workspace, 'outbox')
  try {
    return await copyFiles(outbox, openTarget, options)
  } finally {
    outbox.close()
  }
}

/** Copies all files below an open folder. Returns what was left out. */
export async function copyFiles(
  from: Directory,
  openTarget: OpenTarget,
  { limits, signal, stays, copied, takes }: CopyOptions,
): Promise<readonly Problem[]> {
  const pace = startPace(signal)
  const { files, leftOut } = await selectFiles(from, { limits, pace, hardLinks: 'inside' })
  checkSize(files, limits, from.shown)
  const target = await openTarget()
  try {
    for (const found of files) {
      await pace.rest()
      if (takes?.(found.path) === false) continue
      if (stays !== undefined && found.stat.size > limits.inlineBytes) {
        stays(found.segments.join('/'))
        continue
      }
      const above = found.segments.slice(0, -1)
      const folder = above.length === 0 ? target : makeFolders(target, above)
      try {
        const file = openFound(from, found)
        try {
          const mode = 0o644 | Number(found.stat.mode & 0o111n)
          const out = createFile(folder, found.segments.at(-1)!, mode)
          try {
            const { sha256 } = await readContent(file, found.shown, pace, out)
            copied?.(found.path, sha256)
          } finally {
            closeSync(out)
          }
        } finally {
          closeSync(file.fd)
        }
      } finally {
        if (folder !== target) folder.close()
      }
    }
  } finally {
    target.close()
  }
  return leftOut
}
