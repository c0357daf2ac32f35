import { lstatSync, mkdirSync, rmdirSync, statSync, watch } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { type FilePart, makeFolderIn, readFilePart } from '../workspaces/workspaces.ts'
import { MESSAGES } from './plan.ts'

/** The layout of a run's folder. Names of agents never begin with `_` or contain a dot, so they cannot collide with Orchub's files. */

/** Names tried before giving up. */
const MOST_NAMES = 10_000

/**
 * Makes the folder of a new run beside its plan: `runs/run_1`, or `runs/run_1.2` if another service, or one whose state is
 * gone, has left a run of that name. Agents must not mistake files of that run for their own.
 */
export function claimRunFolder(folder: string, id: string): string {
  makeRuns(join(folder, 'runs'))
  for (let number = 1; number <= MOST_NAMES; number++) {
    const runFolder = join(folder, 'runs', number === 1 ? id : `${id}.${number}`)
    try {
      mkdirSync(runFolder)
      return runFolder
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
  throw new Error(`All folder names for ${id} in ${join(folder, 'runs')} are taken`)
}

/** Removes the folder of a run that was not stored. */
export function releaseRunFolder(runFolder: string): void {
  try {
    rmdirSync(runFolder)
  } catch {
    // The folder is not empty.
  }
}

/** Tries without `recursive` first, with which Node reports a read-only file system as a missing folder. */
function makeRuns(runs: string): void {
  try {
    mkdirSync(runs)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') return
    if (code !== 'ENOENT') throw error
    mkdirSync(runs, { recursive: true })
  }
}

export function workspaceOf(runFolder: string, agent: string): string {
  return join(runFolder, agent)
}

/** Output of an attempt. */
export function logOf(runFolder: string, agent: string, attempt: number): string {
  return join(runFolder, '_logs', `${agent}.${attempt}.log`)
}

/** Exit code of an attempt's command. */
export function exitOf(runFolder: string, agent: string, attempt: number): string {
  return join(runFolder, '_logs', `${agent}.${attempt}.exit`)
}

/** Holds the corrected inputs of each agent, by their places in the inbox. */
export const FIXED = '_fixed'

export function correctionsIn(runFolder: string, agent: string): string {
  return join(runFolder, FIXED, agent)
}

/** Corrected inputs of an agent. Undefined if there are none: a person may also correct the files that the plan names. */
export function correctionsOf(
  runFolder: string,
  agent: string,
): { path: string; within: string } | undefined {
  const path = correctionsIn(runFolder, agent)
  // lstat also finds a broken link, which is refused later.
  return lstatSync(path, { throwIfNoEntry: false }) === undefined ? undefined : { path, within: runFolder }
}

const FIXES = '_fixes'

/** Workspace of a fixer. */
export function fixOf(runFolder: string, agent: string, fix: number): string {
  return join(runFolder, FIXES, `${agent}.${fix}`)
}

/** Call it before a fixer gets a workspace: an agent may have put a link in place of the folder. */
export function makeFixes(runFolder: string): void {
  makeFolderIn(runFolder, FIXES)
}

/** The message queue of a run (S4.16). A plan with a queue has no agent of that name. */
export function messagesOf(runFolder: string): string {
  return join(runFolder, MESSAGES)
}

export function outputsOf(runFolder: string): string {
  return join(runFolder, '_outputs')
}

export function reportFile(runFolder: string, form: 'md' | 'html'): string {
  return join(runFolder, `report.${form}`)
}

/** Reads the end of what an attempt printed; undefined if it printed nothing. */
export function readRunLog(
  runFolder: string,
  agent: string,
  attempt: number,
  most: number,
): FilePart | undefined {
  return readFilePart(logOf(runFolder, agent, attempt), most, 'end')
}

/** Reports the size of an attempt's log whenever it grows. Returns a function that stops it. */
export function watchRunLog(
  runFolder: string,
  agent: string,
  attempt: number,
  { onSize, onFault }: { onSize(bytes: number): void; onFault(): void },
): (() => void) | undefined {
  const path = logOf(runFolder, agent, attempt)
  let last = -1
  const look = () => {
    const bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0
    if (bytes !== last) onSize(bytes)
    last = bytes
  }
  return quietly(() => {
    // Watch the folder, because the file may not exist yet.
    const watcher = watch(dirname(path), (_, name) => {
      if (name !== null && name !== basename(path)) return
      try {
        look()
      } catch {
        end()
      }
    })
    const end = () => {
      watcher.close()
      onFault()
    }
    watcher.on('error', end)
    try {
      look()
    } catch (error) {
      watcher.close()
      throw error
    }
    return () => watcher.close()
  })
}

/** Returns undefined on any error: the folder may be gone. */
function quietly<T>(read: () => T | undefined): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
