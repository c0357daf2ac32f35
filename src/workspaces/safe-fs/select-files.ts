import { type BigIntStats, closeSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { formatBytes } from '../../base/bytes.ts'
import { type Glob, leadsThrough, matchesGlob, parseGlob } from '../../base/glob.ts'
import type { FileLimits } from '../limits.ts'
import {
  failed,
  ProblemError,
  problem,
  refuse,
  type WorkspaceProblem,
  type WorkspaceResult,
} from '../problem.ts'
import {
  type Directory,
  listNames,
  lookAt,
  nextTurn,
  type OpenFile,
  openFolder,
  openFolders,
  openSeen,
  readName,
  showIn,
  showName,
  trapOf,
} from './directory.ts'

/** A regular file that was found. It is opened later and must then be the same one. */
export interface FoundFile {
  readonly path: string
  readonly segments: readonly string[]
  readonly shown: string
  readonly stat: BigIntStats
}

interface Selection {
  readonly files: readonly FoundFile[]
  /**
   * Matching entries that cannot be taken, each with the reason; at most a hundred. If a pattern matches no file, all omitted
   * entries, those that it leads through first: one of them may be the file that is missing.
   */
  readonly leftOut: readonly WorkspaceProblem[]
  /** Patterns that match no file. */
  readonly unmatched: readonly string[]
}

interface SelectOptions {
  readonly limits: FileLimits
  readonly signal?: AbortSignal | undefined
  /** Undefined takes everything. */
  readonly patterns?: readonly OutputPattern[]
  /**
   * A hard link may give an agent the content of a file outside its workspace. `inside`: all names of a file must be in this
   * tree. `any`: the tree is the user's own.
   */
  readonly hardLinks: 'inside' | 'any'
  /** Paths to skip without reporting them. */
  skips?(path: string): boolean
  /** Entries that are never taken, anywhere in the tree. */
  readonly withheld?: WithheldFiles | undefined
}

const MAX_LEFT_OUT = 100

/** Finds the regular files below a folder that match a pattern. */
export async function selectFiles(root: Directory, options: SelectOptions): Promise<Selection> {
  const { patterns, limits, signal, skips, withheld, hardLinks } = options
  const found: FoundFile[] = []
  const omitted: { why: WorkspaceProblem; segments: readonly string[] | undefined }[] = []
  const namesFound = new Map<string, number>()
  const isMeant = (segments: readonly string[]) =>
    patterns === undefined || patterns.some((pattern) => pattern.takes(segments))
  const isWithheld = ({ shown, stat }: TreeEntry) => {
    const why = withheld?.whyNot(stat, shown)
    if (why !== undefined) omitted.push({ why, segments: undefined })
    return why !== undefined
  }

  await walkTree(root, {
    limits,
    signal,
    ...(skips === undefined ? {} : { skips }),
    // Withheld folders are not entered: runs may hold more files than the limit.
    enters: (entry) => !isWithheld(entry),
    file(entry) {
      if (isWithheld(entry)) return
      const { path, segments, shown, stat } = entry
      if (stat.nlink > 1n) namesFound.set(identity(stat), (namesFound.get(identity(stat)) ?? 0) + 1)
      if (isMeant(segments)) found.push({ path, segments, shown, stat })
    },
    trap: (why, segments) => void omitted.push({ why, segments }),
  })

  const files = found.filter(({ shown, segments, stat }) => {
    if (hardLinks === 'any' || stat.nlink <= BigInt(namesFound.get(identity(stat)) ?? 1)) return true
    const what = 'has a hard link outside of this folder, so it may belong to someone else'
    omitted.push({ why: problem('hard_link', shown, what), segments })
    return false
  })
  const unmatched = (patterns ?? []).filter(({ takes }) => !files.some(({ segments }) => takes(segments)))
  const onTheWay = unmatched.flatMap(
    ({ leadsThrough }) => omitted.find(({ segments }) => segments && leadsThrough(segments)) ?? [],
  )
  const meant = omitted.filter(({ segments }) => segments === undefined || isMeant(segments))
  const leftOut = unmatched.length === 0 ? meant : [...new Set([...onTheWay, ...meant, ...omitted])]
  return {
    files,
    leftOut: leftOut.slice(0, MAX_LEFT_OUT).map(({ why }) => why),
    unmatched: unmatched.map(({ pattern }) => pattern),
  }
}

/** Checked before reading: a sparse file takes no space on disk but hours to read. */
export function checkSize(files: readonly FoundFile[], { referencedBytes }: FileLimits, shown: string): void {
  let size = 0
  let largest = files[0]
  for (const file of files) {
    size += Number(file.stat.size)
    if (file.stat.size > largest!.stat.size) largest = file
  }
  if (size <= referencedBytes) return
  const which = `of which ${largest!.shown} has ${formatBytes(Number(largest!.stat.size))}`
  const what = `has ${formatBytes(size)} of files, ${which}; the limit is ${formatBytes(referencedBytes)}`
  refuse('too_large', shown, what)
}

/** Opens a file that was found before. It must be the same one, and have the same number of names. */
export function openFound(root: Directory, { segments, shown, stat }: FoundFile): OpenFile {
  const parent = openFolders(root, segments.slice(0, -1))
  if (!parent.ok) throw new ProblemError(parent.error)
  const name = segments.at(-1)!
  const opened = openSeen(parent.value, name, stat)
  const other = opened.ok ? undefined : lookAt(parent.value, name)
  parent.value.close()
  if (!opened.ok) {
    // The entry that replaced it explains more.
    throw new ProblemError((other === undefined ? undefined : trapOf(shown, other)) ?? opened.error)
  }
  if (opened.value.stat.nlink === stat.nlink) return opened.value
  closeSync(opened.value.fd)
  return refuse('changed', shown, 'was replaced while it was being read')
}

function identity({ dev, ino }: Pick<BigIntStats, 'dev' | 'ino'>): string {
  return `${dev}:${ino}`
}

interface TreeEntry {
  /** Open while the entry is visited. */
  readonly directory: Directory
  readonly name: string
  readonly segments: readonly string[]
  readonly path: string
  readonly shown: string
  readonly stat: BigIntStats
}

interface TreeWalk {
  readonly limits: Pick<FileLimits, 'files' | 'depth' | 'pathBytes'>
  readonly signal?: AbortSignal | undefined
  file(entry: TreeEntry): void | Promise<void>
  /** Decides which folders are entered; all if not given. */
  enters?(entry: TreeEntry): boolean
  /** A link, a device or an invalid name, which is not entered. `segments` is set if the name is readable. */
  trap(problem: WorkspaceProblem, segments: readonly string[] | undefined): void
  /** Decides which paths are skipped. */
  skips?(path: string): boolean
}

/** Visits every regular file below a folder in the order of names. Throws a ProblemError over a limit. */
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
      await nextTurn(walk.signal)
      const read = readName(bytes)
      if (read.ok) await visitEntry(directory, above, read.value)
      else walk.trap(problem('bad_name', `${directory.shown}/${read.error.shown}`, read.error.why), undefined)
    }
  }

  async function visitEntry(directory: Directory, above: readonly string[], name: string): Promise<void> {
    const segments = [...above, name]
    const path = segments.join('/')
    if (walk.skips?.(path)) return
    const shown = showIn(directory, name)
    const stat = lookAt(directory, name)
    // Deleted since the folder was listed.
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
    // The agent removed its permissions, so its content is unknown. Any other failure is a concurrent change.
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

/** A pattern of a plan for files below outbox/. */
interface OutputPattern {
  readonly pattern: string
  /** `segments` is a path below outbox/. */
  takes(segments: readonly string[]): boolean
  /** True if the path, or something below it, may match. */
  leadsThrough(segments: readonly string[]): boolean
}

/** All outputs, without the remains of a failure (S4.11). */
const ALL = 'outbox/**'
const FAILURE_REMAINS = new Set(['error_report.md', 'partial'])

/** Accepts patterns with or without a leading `outbox/`. */
export function parseOutputs(outputs: readonly string[]): WorkspaceResult<OutputPattern[]> {
  const patterns: OutputPattern[] = []
  const problems: WorkspaceProblem[] = []
  for (const pattern of outputs) {
    const parsed = parseGlob(pattern === '' ? '' : fromOutbox(pattern))
    if (parsed.ok) patterns.push(patternOf(pattern, parsed.value))
    else problems.push(problem('bad_path', `The pattern ${showName(pattern)}`, parsed.error))
  }
  return problems.length > 0 ? failed(...problems) : { ok: true, value: patterns }
}

function fromOutbox(pattern: string): string {
  const path = pattern.replace(/^\.\//, '')
  return path.startsWith('outbox/') ? path : `outbox/${path}`
}

function patternOf(pattern: string, glob: Glob): OutputPattern {
  const takes = takesBy(glob, fromOutbox(pattern))
  return {
    pattern,
    takes,
    leadsThrough: (segments) => takes(segments) || leadsThrough(glob, `outbox/${segments.join('/')}`),
  }
}

function takesBy(glob: Glob, pattern: string): OutputPattern['takes'] {
  if (pattern === ALL || pattern === 'outbox/') return (segments) => !FAILURE_REMAINS.has(segments[0]!)
  const takes = (segments: readonly string[]) => matchesGlob(glob, `outbox/${segments.join('/')}`)
  // A folder stands for everything in it.
  return glob.isLiteral ? (segments) => segments.some((_, end) => takes(segments.slice(0, end + 1))) : takes
}

/** A file or folder of Orchub's own that may lie inside one of the user's folders. */
export interface Withheld {
  readonly path: string
  /** For messages: `is the store of the service`. */
  readonly what: string
  /** Never given to agents, even if a plan names it. */
  readonly isSecret: boolean
}

export interface WithheldFiles {
  /** Why it is omitted; undefined: it is not. */
  whyNot(stat: BigIntStats, shown: string): WorkspaceProblem | undefined
  /** Throws if the path leads into a secret. */
  refuseWithin(path: string, shown: string): void
}

/** Compares by device and inode, because a folder may have several names. */
export function findWithheld(withheld: readonly Withheld[]): WithheldFiles {
  const known = new Map<string, Withheld>()
  for (const one of withheld) {
    const stat = statSync(one.path, { bigint: true, throwIfNoEntry: false })
    if (stat !== undefined) known.set(identity(stat), one)
  }
  return {
    whyNot(stat, shown) {
      const what = known.get(identity(stat))?.what
      return what === undefined ? undefined : problem('withheld', shown, what)
    },
    refuseWithin(path, shown) {
      for (const id of known.size === 0 ? [] : identitiesAbove(path)) {
        const one = known.get(id)
        if (one?.isSecret) refuse('withheld', shown, `cannot be an input: ${one.path} ${one.what}`)
      }
    },
  }
}

/** Whether a path without links is that folder or lies below it. */
export function isWithin(path: string, folder: string): boolean {
  const stat = statSync(folder, { bigint: true, throwIfNoEntry: false })
  return stat !== undefined && identitiesAbove(path).includes(identity(stat))
}

/** The identities of the path itself and of all folders above it. */
function identitiesAbove(path: string): string[] {
  const above = dirname(path)
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false })
  const own = stat === undefined ? [] : [identity(stat)]
  return above === path ? own : [...own, ...identitiesAbove(above)]
}
