import { mkdirSync, renameSync } from 'node:fs'
import { DEFAULT_LIMITS } from '../workspaces/limits.ts'
import { copyFiles, namesOf } from '../workspaces/outbox.ts'
import { attempt, type Outcome, type Problem, ProblemError, refuse } from '../workspaces/problem.ts'
import { type Directory, lookAt, type Opened, openFolder, openPart } from '../workspaces/safe-fs/directory.ts'
import { startPace } from '../workspaces/safe-fs/pace.ts'
import { removeTree } from '../workspaces/safe-fs/remove-tree.ts'
import { temporaryName } from '../workspaces/safe-fs/write-file.ts'
import { FIXED, openOwn } from './run-folder.ts'

export interface CorrectionsWanted {
  /** The folder of the run. */
  readonly place: string
  readonly agent: string
  /** Where the fixer worked. */
  readonly workspace: string
  /** What is there already was put right before, and stays where the fixer has nothing better. */
  readonly isCorrected: boolean
  readonly signal: AbortSignal
}

/** The files of the protocol itself are written anew each time; a fixer cannot put others in their place. */
const OWN: ReadonlySet<string> = new Set(['instructions.md', 'dependencies.json', 'references.json'])

/** Whatever else is in its outbox is its own report. */
const CORRECTED = 'inputs'

/**
 * What the fixer made stands in place of what comes, from the next preparation on. Other agents can write beside it: all goes
 * through open folders, and what nobody was asked for does not count.
 */
export function takeCorrections(wanted: CorrectionsWanted): Promise<Outcome<readonly string[]>> {
  const { place, agent, workspace, isCorrected, signal } = wanted
  return attempt(FIXED, async () => {
    const fixed = openOwn(place, FIXED)
    const draft = temporaryName(agent)
    const openDraft = () => mustOpen(openFolder(fixed, draft))
    try {
      mkdirSync(fixed.at(draft), 0o755)
      const files = new Set<string>()
      const leftOut = await inFolder(openCorrected(workspace), (from) =>
        copyFiles(from, openDraft, {
          ...{ limits: DEFAULT_LIMITS, signal },
          takes: (path) => !OWN.has(path),
          copied: (path) => files.add(path),
        }),
      )
      if (files.size === 0) nothingThere(leftOut)
      const before = isCorrected ? openFolder(fixed, agent) : undefined
      // Whoever said so may have changed what the plan names, and put nothing here.
      if (before?.ok === true || (before !== undefined && before.problem.code !== 'missing')) {
        const takes = (path: string) => !files.has(path)
        await inFolder(mustOpen(before), (from) =>
          copyFiles(from, openDraft, { limits: DEFAULT_LIMITS, signal, takes }),
        )
      }
      // Neither is gone before the other is in its place.
      const old = temporaryName(agent)
      const hadSome = lookAt(fixed, agent) !== undefined
      if (hadSome) renameSync(fixed.at(agent), fixed.at(old))
      renameSync(fixed.at(draft), fixed.at(agent))
      if (hadSome) await removeTree(fixed, old, startPace())
      return [...files]
    } catch (error) {
      await removeTree(fixed, draft, startPace())
      throw error
    } finally {
      fixed.close()
    }
  })
}

function openCorrected(workspace: string): Directory {
  const outbox = openPart(workspace, 'outbox')
  try {
    const opened = openFolder(outbox, CORRECTED)
    return !opened.ok && opened.problem.code === 'missing' ? nothingThere() : mustOpen(opened)
  } finally {
    outbox.close()
  }
}

function nothingThere(leftOut: readonly Problem[] = []): never {
  const what = leftOut.length === 0 ? 'nothing' : 'nothing that counts'
  refuse('missing', 'the fixer', `put ${what} into outbox/${CORRECTED}/${namesOf(leftOut)}`)
}

async function inFolder<T>(folder: Directory, work: (folder: Directory) => Promise<T>): Promise<T> {
  try {
    return await work(folder)
  } finally {
    folder.close()
  }
}

function mustOpen<T>(opened: Opened<T>): T {
  if (opened.ok) return opened.value
  throw new ProblemError(opened.problem)
}
