import { closeSync, mkdirSync } from 'node:fs'
import { readContent } from './content.ts'
import { openDirectory, openPart } from './directory.ts'
import { formatBytes, type Limits } from './limits.ts'
import type { OutputContent } from './outbox.ts'
import { startPace } from './pace.ts'
import { attempt, type Outcome, type Problem, refuse } from './problem.ts'
import { openFound, selectFiles } from './selection.ts'
import { createFile, makeFolders, writeAll } from './writing.ts'

export interface KeepOptions {
  readonly limits: Limits
  readonly signal?: AbortSignal
  /** Where it is given, large files stay where they are, and are told of (C21). */
  readonly stays?: (path: string) => void
  /** What was copied of each file. */
  readonly copied?: (path: string, sha256: string) => void
}

/** The same of what was read before. */
export function writeOutbox(
  outputs: readonly OutputContent[],
  to: string,
  signal?: AbortSignal,
): Promise<Outcome<void>> {
  return attempt(to, async () => {
    const pace = startPace(signal)
    mkdirSync(to, { recursive: true })
    const target = openDirectory(to)
    try {
      for (const { path, bytes, executable } of outputs) {
        const rest = pace.rest()
        if (rest !== undefined) await rest
        const segments = path.split('/')
        const above = segments.slice(0, -1)
        const folder = above.length === 0 ? target : makeFolders(target, above)
        try {
          const out = createFile(folder, segments.at(-1)!, 0o644 | executable)
          try {
            writeAll(out, bytes)
          } finally {
            closeSync(out)
          }
        } finally {
          if (folder !== target) folder.close()
        }
      }
    } finally {
      target.close()
    }
  })
}

/** Copies the outputs of an agent, large ones too, into a new folder of the user's. Says what was left out. */
export function copyOutbox(
  workspace: string,
  to: string,
  { limits, signal, stays, copied }: KeepOptions,
): Promise<Outcome<readonly Problem[]>> {
  return attempt(to, async () => {
    const pace = startPace(signal)
    const outbox = openPart(workspace, 'outbox')
    try {
      const { files, leftOut } = await selectFiles(outbox, { limits, pace, hardLinks: 'inside' })
      const size = files.reduce((sum, { stat }) => sum + Number(stat.size), 0)
      if (size > limits.referencedBytes) {
        refuse(
          'too_large',
          'outbox',
          `is larger than ${formatBytes(limits.referencedBytes)}, which is the limit`,
        )
      }
      mkdirSync(to, { recursive: true })
      const target = openDirectory(to)
      try {
        for (const found of files) {
          const rest = pace.rest()
          if (rest !== undefined) await rest
          if (stays !== undefined && found.stat.size > limits.inlineBytes) {
            stays(found.segments.join('/'))
            continue
          }
          const above = found.segments.slice(0, -1)
          const folder = above.length === 0 ? target : makeFolders(target, above)
          const file = openFound(outbox, found)
          try {
            const mode = 0o644 | Number(found.stat.mode & 0o111n)
            const out = createFile(folder, found.segments.at(-1)!, mode)
            try {
              const { sha256 } = await readContent(file, found.shown, pace, out)
              copied?.(found.path, sha256)
            } finally {
              closeSync(out)
            }
          } finally {
            closeSync(file.fd)
            if (folder !== target) folder.close()
          }
        }
      } finally {
        target.close()
      }
      return leftOut
    } finally {
      outbox.close()
    }
  })
}
