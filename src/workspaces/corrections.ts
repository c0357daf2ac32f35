import { mkdirSync, renameSync } from 'node:fs'
import { PROTOCOL_FILES } from './inbox.ts'
import { copyFiles, namesOf } from './outbox.ts'
import { attempt, refuse, type WorkspaceProblem, type WorkspaceResult } from './problem.ts'
import { type Directory, lookAt, mustOpen, openDirectory, openFolder, openPart } from './safe-fs/directory.ts'
import { makeFolder, temporaryName } from './safe-fs/files.ts'
import { removeTree } from './safe-fs/remove-tree.ts'

interface CorrectionsWanted {
  /** The folder of the run. */
  readonly runFolder: string
  /** The folder in it that holds the corrected inputs of each agent. */
  readonly name: string
  readonly agent: string
  /** The workspace of the fixer. */
  readonly workspace: string
  /** Corrections of earlier fixes exist: they stay unless this fixer replaced them. */
  readonly isCorrected: boolean
  readonly signal: AbortSignal
}

/** The folder in the fixer's outbox that holds corrected inputs; everything beside it is the fixer's report. */
const CORRECTED = 'inputs'

/**
 * Copies the inputs that a fixer corrected to `runFolder/name/agent`, where the next preparation of the agent finds them. Other
 * agents can write there, so all access goes through open folders.
 */
export function collectCorrections(wanted: CorrectionsWanted): Promise<WorkspaceResult<readonly string[]>> {
  const { runFolder, name, agent, workspace, isCorrected, signal } = wanted
  return attempt(name, async () => {
    const fixed = openCorrections(runFolder, name)
    const draft = temporaryName(agent)
    const openDraft = () => mustOpen(openFolder(fixed, draft))
    try {
      mkdirSync(fixed.at(draft), 0o755)
      const files = new Set<string>()
      const leftOut = await inFolder(openCorrected(workspace), (from) =>
        copyFiles(from, openDraft, {
          signal,
          takes: (path) => !PROTOCOL_FILES.has(path),
          copied: (path) => files.add(path),
        }),
      )
      if (files.size === 0) refuseEmpty(leftOut)
      const before = isCorrected ? openFolder(fixed, agent) : undefined
      // A person who reported a fix may have changed the files that the plan names, and put nothing here.
      if (before?.ok === true || (before !== undefined && before.error.code !== 'missing')) {
        const takes = (path: string) => !files.has(path)
        await inFolder(mustOpen(before), (from) => copyFiles(from, openDraft, { signal, takes }))
      }
      // A crash between the two renames leaves neither: the agent then needs another correction.
      const old = temporaryName(agent)
      const hadSome = lookAt(fixed, agent) !== undefined
      if (hadSome) renameSync(fixed.at(agent), fixed.at(old))
      renameSync(fixed.at(draft), fixed.at(agent))
      if (hadSome) await removeTree(fixed, old)
      return [...files]
    } catch (error) {
      await removeTree(fixed, draft)
      throw error
    } finally {
      fixed.close()
    }
  })
}

function openCorrections(runFolder: string, name: string): Directory {
  using root = openDirectory(runFolder, { shown: '' })
  return makeFolder(root, name)
}

function openCorrected(workspace: string): Directory {
  using outbox = openPart(workspace, 'outbox')
  const opened = openFolder(outbox, CORRECTED)
  return !opened.ok && opened.error.code === 'missing' ? refuseEmpty() : mustOpen(opened)
}

function refuseEmpty(leftOut: readonly WorkspaceProblem[] = []): never {
  const what = leftOut.length === 0 ? 'nothing' : 'no usable file'
  refuse('missing', 'the fixer', `put ${what} into outbox/${CORRECTED}/${namesOf(leftOut)}`)
}

async function inFolder<T>(folder: Directory, work: (folder: Directory) => Promise<T>): Promise<T> {
  try {
    return await work(folder)
  } finally {
    folder.close()
  }
}
