import { type FSWatcher, statSync, watch } from 'node:fs'
import { basename, dirname } from 'node:path'

const UNWATCHED_LOOK_MS = 1000

export interface FileWatch {
  /** Watches the file that is at the path now for writes, wherever it is moved to. */
  attach(): void
  close(): void
}

export interface FileWatchOptions {
  readonly file: string
  /** Something was written, or another file may be at the path now. May be called without need. */
  changed(): void
  failed(error: unknown): void
}

/**
 * File events for one path, whose file and folders may not be there yet, or be replaced. Two watches: one on the
 * file itself tells of writes, one on its folder (or the nearest folder there is) tells which file is at the path.
 */
export function watchFile({ file, changed, failed }: FileWatchOptions): FileWatch {
  const folder = dirname(file)
  let folderWatch: { path: string; inode: bigint; watcher: FSWatcher } | undefined
  let fileWatch: FSWatcher | undefined
  let closed = false
  let looking: NodeJS.Timeout | undefined

  /** The system has no watch left for us, say: then it is looked at now and then. */
  function fail(error: unknown) {
    if (closed || looking !== undefined) return
    looking = setInterval(changed, UNWATCHED_LOOK_MS).unref()
    failed(error)
  }

  function open(path: string, heard: (kind: string, name: string | null) => void): FSWatcher | undefined {
    try {
      const watcher = watch(path, { persistent: false }, heard)
      watcher.on('error', fail)
      return watcher
    } catch (error) {
      // Gone again between the look and the watch: the next event tells.
      if (!isMissing(error)) fail(error)
      return undefined
    }
  }

  function watchFolder() {
    // A folder may come to be between the look and the watch, so look again until nothing has changed.
    for (let tries = 0; tries < 100 && !closed; tries++) {
      const nearest = nearestFolder(folder)
      if (nearest.path === folderWatch?.path && nearest.inode === folderWatch.inode) return
      folderWatch?.watcher.close()
      folderWatch = undefined
      const watcher = open(nearest.path, (kind, name) => {
        const isOurs = nearest.path !== folder || name === null || name === basename(file)
        // A folder that is moved or deleted tells so under its own name.
        const isItself = name === basename(nearest.path)
        if (kind !== 'rename' || !(isOurs || isItself)) return
        watchFolder()
        changed()
      })
      if (watcher === undefined) return
      folderWatch = { ...nearest, watcher }
    }
  }

  watchFolder()
  return {
    attach() {
      fileWatch?.close()
      fileWatch = closed ? undefined : open(file, changed)
    },
    close() {
      closed = true
      clearInterval(looking)
      fileWatch?.close()
      folderWatch?.watcher.close()
    },
  }
}

function nearestFolder(folder: string): { path: string; inode: bigint } {
  for (let path = folder; ; path = dirname(path)) {
    const found = statSync(path, { bigint: true, throwIfNoEntry: false })
    if (found?.isDirectory()) return { path, inode: found.ino }
    if (path === dirname(path)) return { path, inode: 0n }
  }
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT'
}
