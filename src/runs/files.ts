import { closeSync, readSync, statSync, watch } from 'node:fs'
import { basename, dirname } from 'node:path'
import { openDirectory, openFile, openFolders, openPart } from '../workspaces/safe-fs/directory.ts'
import { splitPath } from '../workspaces/safe-fs/entry-name.ts'
import { logOf, workspaceOf } from './layout.ts'

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
