import { closeSync, lstatSync, mkdirSync, readSync, rmdirSync, statSync, watch } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import {
  type Directory,
  openDirectory,
  openFile,
  openFolders,
  openPart,
} from '../workspaces/safe-fs/directory.ts'
import { splitPath } from '../workspaces/safe-fs/entry-name.ts'
import { makeFolder } from '../workspaces/safe-fs/write-file.ts'
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

/** The end of a file of a run, as text. */
export interface FileEnd {
  readonly text: string
  readonly bytes: number
  /** What stands before it was left out. */
  readonly isCut: boolean
}

/** What an attempt printed, undefined if there is nothing. */
export function readRunLog(place: string, agent: string, attempt: number, most: number): FileEnd | undefined {
  const path = logOf(place, agent, attempt)
  return quietly(() => {
    const folder = openDirectory(dirname(path))
    try {
      return readEnd(folder, basename(path), most, 'end')
    } finally {
      folder.close()
    }
  })
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

/** One of an agent's outputs; no link in the way is followed (C11). */
export function readRunOutput(place: string, agent: string, path: string, most: number): FileEnd | undefined {
  return quietly(() => {
    const split = splitPath(path.replace(/^outbox\//, ''))
    if ('why' in split) return undefined
    const { segments } = split
    const outbox = openPart(workspaceOf(place, agent), 'outbox')
    try {
      if (segments.length === 1) return readEnd(outbox, segments[0]!, most, 'beginning')
      const folder = openFolders(outbox, segments.slice(0, -1))
      if (!folder.ok) return undefined
      try {
        return readEnd(folder.value, segments.at(-1)!, most, 'beginning')
      } finally {
        folder.value.close()
      }
    } finally {
      outbox.close()
    }
  })
}

function readEnd(
  folder: Parameters<typeof openFile>[0],
  name: string,
  most: number,
  which: 'beginning' | 'end',
): FileEnd | undefined {
  const opened = openFile(folder, name)
  if (!opened.ok) return undefined
  const { fd, stat } = opened.value
  try {
    const size = Number(stat.size)
    const buffer = Buffer.alloc(Math.min(size, most))
    const count = readSync(fd, buffer, 0, buffer.length, which === 'end' ? size - buffer.length : 0)
    return { text: buffer.toString('utf8', 0, count), bytes: size, isCut: size > most }
  } finally {
    closeSync(fd)
  }
}

/** It may be gone, or no folder any more: then there is nothing to show. */
function quietly<T>(read: () => T | undefined): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
