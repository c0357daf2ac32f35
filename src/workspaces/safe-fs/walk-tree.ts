import type { BigIntStats } from 'node:fs'
import type { FileLimits } from '../limits.ts'
import { ProblemError, problem, refuse, type WorkspaceProblem } from '../problem.ts'
import { type Directory, listNames, lookAt, openFolder, showIn, trapOf } from './directory.ts'
import { readName } from './entry-name.ts'
import type { Pace } from './pace.ts'

interface TreeEntry {
  /** Open as long as the entry is being visited. */
  readonly directory: Directory
  readonly name: string
  readonly segments: readonly string[]
  readonly path: string
  readonly shown: string
  readonly stat: BigIntStats
}

interface TreeWalk {
  readonly limits: Pick<FileLimits, 'files' | 'depth' | 'pathBytes'>
  readonly pace: Pace
  file(entry: TreeEntry): void | Promise<void>
  /** Decides which folders are entered; all if not given. */
  enters?(entry: TreeEntry): boolean
  /** A link, a device, a name that is none: not entered. Its segments where its name can be read. */
  trap(problem: WorkspaceProblem, segments: readonly string[] | undefined): void
  /** Decides which paths are skipped. */
  skips?(path: string): boolean
}

/** Visits every file below a folder in the order of names, and no other. Over a limit it throws a ProblemError. */
export async function walkTree(root: Directory, walk: TreeWalk): Promise<void> {
  let seen = 0

  async function visit(directory: Directory, above: readonly string[]): Promise<void> {
    const left = walk.limits.files - seen
    const names = listNames(directory, left + 1)
    if (names.length > left) {
      refuse('too_many_files', root.shown, `holds more than ${walk.limits.files} files, which is the limit`)
    }
    seen += names.length
    for (const bytes of names.sort(Buffer.compare)) {
      await walk.pace.rest()
      const read = readName(bytes)
      if (read.ok) await visitEntry(directory, above, read.name)
      else walk.trap(problem('bad_name', `${directory.shown}/${read.shown}`, read.why), undefined)
    }
  }

  async function visitEntry(directory: Directory, above: readonly string[], name: string): Promise<void> {
    const segments = [...above, name]
    const path = segments.join('/')
    if (walk.skips?.(path)) return
    const shown = showIn(directory, name)
    const stat = lookAt(directory, name)
    // Gone since the folder was listed: as if it had never been there.
    if (stat === undefined) return
    const trap = trapOf(shown, stat) ?? tooLong(path, shown)
    if (trap !== undefined) return walk.trap(trap, segments)
    const entry = { directory, name, segments, path, shown, stat }
    if (stat.isFile()) await walk.file(entry)
    else await enter(entry)
  }

  async function enter(entry: TreeEntry): Promise<void> {
    if (walk.enters?.(entry) === false) return
    if (entry.segments.length > walk.limits.depth) {
      refuse('too_deep', root.shown, `has folders more than ${walk.limits.depth} deep, which is the limit`)
    }
    const opened = openFolder(entry.directory, entry.name)
    // Closed by the agent itself: what is in it cannot be known. Anything else is a change under our hands.
    if (!opened.ok && opened.error.code === 'unreadable') return walk.trap(opened.error, entry.segments)
    if (!opened.ok) throw new ProblemError(opened.error)
    try {
      await visit(opened.value, entry.segments)
    } finally {
      opened.value.close()
    }
  }

  function tooLong(path: string, shown: string): WorkspaceProblem | undefined {
    const most = walk.limits.pathBytes
    if (Buffer.byteLength(path) <= most) return undefined
    return problem('bad_path', shown, `has a path of more than ${most} bytes, which is the limit`)
  }

  await visit(root, [])
}
