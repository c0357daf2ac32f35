import { type FSWatcher, watch } from 'node:fs'
import { AppError } from '../base/errors.ts'
import { errnoOf } from './problem.ts'
import { type Directory, openDirectory } from './safe-fs/directory.ts'

interface FolderWatch {
  /** The watched folder, open until `close`. */
  readonly directory: Directory
  /** Whether its path still leads to it. */
  isStillThere(): boolean
  close(): void
}

interface FolderWatchOptions {
  readonly folder: string
  /** Name for messages. */
  readonly shown: string
  /** The name of the changed entry or of the folder itself; null if the system does not say. */
  heard(name: string | null): void
  lost(why: string): void
}

/** Watches one folder, so that replaced files are noticed too. */
export function watchFolder({ folder, shown, heard, lost }: FolderWatchOptions): FolderWatch {
  const directory = openDirectory(folder, { shown })
  let watcher: FSWatcher
  try {
    watcher = watch(folder, (_, name) => heard(name))
  } catch (error) {
    directory.close()
    throw explained(error, folder)
  }
  watcher.on('error', (error) => lost(`can no longer be watched (${error.message})`))
  return {
    directory,
    isStillThere() {
      try {
        const now = openDirectory(folder)
        try {
          return now.ino === directory.ino && now.dev === directory.dev
        } finally {
          now.close()
        }
      } catch {
        return false
      }
    },
    close() {
      watcher.close()
      directory.close()
    },
  }
}

function explained(error: unknown, folder: string): unknown {
  const code = errnoOf(error)
  if (code !== 'ENOSPC' && code !== 'EMFILE') return error
  return new AppError(
    'RUNTIME_FAILED',
    `Cannot watch ${folder}: the system's limit on file watches is reached`,
    {
      hint: 'Raise fs.inotify.max_user_watches and fs.inotify.max_user_instances, or run fewer agents at once.',
      cause: error,
    },
  )
}
