import { lstatSync, mkdirSync, rmdirSync, statSync, watch } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { type FilePart, makeFolderIn, readFilePart } from '../workspaces/workspaces.ts'
import { MESSAGES } from './plan.ts'

/** Where things are in the folder of a run. No agent's name begins with `_` or holds a dot, so that nothing of ours meets theirs. */

/** Tried before it is taken for a fault. */
const MOST_PLACES = 10_000

/**
 * Makes the folder of a new run beside its plan: `runs/run_1`, and `runs/run_1.2` where another service, or one whose state is
 * gone, has left a run of that name. What lies there is not ours, and no agent may take it for its own.
 */
export function claimPlace(folder: string, id: string): string {
  makeRuns(join(folder, 'runs'))
  for (let number = 1; number <= MOST_PLACES; number++) {
    const place = join(folder, 'runs', number === 1 ? id : `${id}.${number}`)
    try {
      mkdirSync(place)
      return place
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
  throw new Error(`${join(folder, 'runs')} has no place left for ${id}`)
}

/** Of a run that was not to be. */
export function releasePlace(place: string): void {
  try {
    rmdirSync(place)
  } catch {
    // What somebody has put into it stays.
  }
}

/** By itself first: with `recursive`, a file system that is read-only is told as a folder that is not there. */
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

export function workspaceOf(place: string, agent: string): string {
  return join(place, agent)
}

/** What an attempt printed. */
export function logOf(place: string, agent: string, attempt: number): string {
  return join(place, '_logs', `${agent}.${attempt}.log`)
}

/** How the command of an attempt ended. */
export function exitOf(place: string, agent: string, attempt: number): string {
  return join(place, '_logs', `${agent}.${attempt}.exit`)
}

/** Where inputs that were put right are, by their places in the inbox. */
export const FIXED = '_fixed'

export function correctionsIn(place: string, agent: string): string {
  return join(place, FIXED, agent)
}

/** Those of an agent, undefined where there are none: one may also be put right where the plan has it from. */
export function correctionsOf(place: string, agent: string): { path: string; within: string } | undefined {
  const path = correctionsIn(place, agent)
  // A link that leads nowhere is there, too, and is refused.
  return lstatSync(path, { throwIfNoEntry: false }) === undefined ? undefined : { path, within: place }
}

const FIXES = '_fixes'

/** Where a fixer works. */
export function fixOf(place: string, agent: string, fix: number): string {
  return join(place, FIXES, `${agent}.${fix}`)
}

/** Call it before a fixer gets a workspace: an agent may have put a link in place of the folder. */
export function makeFixes(place: string): void {
  makeFolderIn(place, FIXES)
}

/** The queue that the agents of a run share (S4.16). A plan that has one has no agent of that name. */
export function messagesOf(place: string): string {
  return join(place, MESSAGES)
}

export function outputsOf(place: string): string {
  return join(place, '_outputs')
}

export function reportOf(place: string, form: 'md' | 'html'): string {
  return join(place, `report.${form}`)
}

/** Reads the end of what an attempt printed; undefined if it printed nothing. */
export function readRunLog(
  place: string,
  agent: string,
  attempt: number,
  most: number,
): FilePart | undefined {
  return readFilePart(logOf(place, agent, attempt), most, 'end')
}

/** Tells how much an attempt has printed, whenever it prints more. Until the returned function is called, or a fault. */
export function watchRunLog(
  place: string,
  agent: string,
  attempt: number,
  { onSize, onFault }: { onSize(bytes: number): void; onFault(): void },
): (() => void) | undefined {
  const path = logOf(place, agent, attempt)
  let last = -1
  const look = () => {
    const bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0
    if (bytes !== last) onSize(bytes)
    last = bytes
  }
  return quietly(() => {
    // The folder: the file may not be there yet.
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

/** It may be gone, or no folder any more: then there is nothing to show. */
function quietly<T>(read: () => T | undefined): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
