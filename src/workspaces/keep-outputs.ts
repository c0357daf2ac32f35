import { closeSync, mkdirSync, renameSync } from 'node:fs'
import { readContent } from './content.ts'
import { type Directory, openDirectory, openFolder, openPart } from './directory.ts'
import type { Limits } from './limits.ts'
import { startPace } from './pace.ts'
import { attempt, errnoOf, type Outcome, type Problem, ProblemError } from './problem.ts'
import { removeTree } from './removal.ts'
import { checkSize, openFound, selectFiles } from './selection.ts'
import { createFile, makeFolders, temporaryName } from './writing.ts'

export interface KeepOptions {
  readonly limits: Limits
  readonly signal?: AbortSignal
  /** Where it is given, large files stay where they are, and are told of (C21). */
  readonly stays?: (path: string) => void
  /** What was copied of each file. */
  readonly copied?: (path: string, sha256: string) => void
  /** Where it is given, only these. */
  readonly takes?: (path: string) => boolean
}

/** A folder to be made where agents can write, too. */
export interface NewFolder {
  readonly parent: Directory
  readonly name: string
}

type OpenTarget = () => Directory | Promise<Directory>

/** Copies the outputs of an agent, large ones too, into an empty folder of the user's. Says what was left out. */
export function copyOutbox(
  workspace: string,
  to: string,
  options: KeepOptions,
): Promise<Outcome<readonly Problem[]>> {
  return attempt(to, () => copyFrom(workspace, options, () => openDirectory(to)))
}

/** The same into a folder that is made for it: whole, or not there. */
export function keepOutbox(
  workspace: string,
  to: NewFolder,
  options: KeepOptions,
): Promise<Outcome<readonly Problem[]>> {
  return wholeOrNothing(to, (openTarget) => copyFrom(workspace, options, openTarget))
}

/**
 * Filled under a hidden name, so that nobody takes a part of it for all of it, also after a crash. What fails, or is called
 * off, leaves nothing behind.
 */
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

/** Whatever an agent has put there is none of the outputs. */
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
  options: KeepOptions,
  openTarget: OpenTarget,
): Promise<readonly Problem[]> {
  const outbox = openPart(workspace, 'outbox')
  try {
    return await copyFiles(outbox, openTarget, options)
  } finally {
    outbox.close()
  }
}

/** Copies what is below an open folder. Says what was left out. */
export async function copyFiles(
  from: Directory,
  openTarget: OpenTarget,
  { limits, signal, stays, copied, takes }: KeepOptions,
): Promise<readonly Problem[]> {
  const pace = startPace(signal)
  const { files, leftOut } = await selectFiles(from, { limits, pace, hardLinks: 'inside' })
  checkSize(files, limits, from.shown)
  const target = await openTarget()
  try {
    for (const found of files) {
      const rest = pace.rest()
      if (rest !== undefined) await rest
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
