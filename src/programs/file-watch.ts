import { type FSWatcher, statSync, watch } from 'node:fs'
import { basename, dirname } from 'node:path'

const UNWATCHED_LOOK_MS = 1000

interface FileWatch {
  /** Watches the file that is at the path now for writes, even if it is moved. */
  attach(): void
  close(): void
}

interface FileWatchOptions {
  readonly file: string
  /** The file was written or replaced. May be called without a change. */
  changed(): void
  failed(error: unknown): void
}

/**
 * File events for one path whose file and folders may not exist yet or may be replaced. Uses two watches: one
 * on the file reports writes, one on its folder (or the nearest existing one) reports replacements.
 */
export function watchFile({ file, changed, failed }: FileWatchOptions): FileWatch {
  const folder = dirname(file)
  let folderWatch: { path: string; inode: bigint; watcher: FSWatcher } | undefined
  let fileWatch: FSWatcher | undefined
  let closed = false
  let looking: NodeJS.Timeout | undefined

  /** The system may have run out of watches: poll instead. */
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
      // Deleted between the check and the watch; the next event tells.
      if (!isMissing(error)) fail(error)
      return undefined
    }
  }

  function watchFolder() {
    // A folder may appear between the check and the watch, so check again until nothing changes.
    for (let tries = 0; tries < 100 && !closed; tries++) {
      const nearest = nearestFolder(folder)
      if (nearest.path === folderWatch?.path && nearest.inode === folderWatch.inode) return
      folderWatch?.watcher.close()
      folderWatch = undefined
      const watcher = open(nearest.path, (kind, name) => {
        const isOurs = nearest.path !== folder || name === null || name === basename(file)
        // A moved or deleted folder is reported under its own name.
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
