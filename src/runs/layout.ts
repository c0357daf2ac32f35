/** Where things are in the folder of a run. No agent's name begins with `_` or holds a dot, so that nothing of ours meets theirs. */
import { lstatSync, mkdirSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { type Directory, openDirectory } from '../workspaces/safe-fs/directory.ts'
import { makeFolder } from '../workspaces/safe-fs/writing.ts'
import { MESSAGES } from './plan.ts'

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

/** Opens a folder of ours beside the workspaces, made where it is missing. Throws where an agent has put a link in its place. */
export function openOwn(place: string, name: string): Directory {
  const root = openDirectory(place, { shown: '' })
  try {
    return makeFolder(root, name)
  } finally {
    root.close()
  }
}

/** Before a fixer works: what is made in it is made there. */
export function makeFixes(place: string): void {
  openOwn(place, FIXES).close()
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
