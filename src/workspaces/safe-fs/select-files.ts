import { type BigIntStats, closeSync } from 'node:fs'
import { formatBytes } from '../../base/bytes.ts'
import type { FileLimits } from '../limits.ts'
import type { OutputPattern } from '../output-patterns.ts'
import { ProblemError, problem, refuse, type WorkspaceProblem } from '../problem.ts'
import type { WithheldSeen } from '../withheld.ts'
import { type Directory, lookAt, type OpenFile, openFolders, openSeen, trapOf } from './directory.ts'
import type { Pace } from './pace.ts'
import { walkTree } from './walk-tree.ts'

/** A regular file that was seen; it is opened later, and must then be the same one. */
export interface FoundFile {
  readonly path: string
  readonly segments: readonly string[]
  readonly shown: string
  readonly stat: BigIntStats
}

interface Selection {
  readonly files: readonly FoundFile[]
  /**
   * Matching entries that cannot be taken, each with the reason; at most a hundred. If a pattern matches no file, entries on
   * its way come first.
   */
  readonly leftOut: readonly WorkspaceProblem[]
  /** Patterns that mean no file. */
  readonly unmatched: readonly string[]
}

interface SelectOptions {
  readonly limits: FileLimits
  readonly pace: Pace
  /** Undefined takes everything. */
  readonly patterns?: readonly OutputPattern[]
  /**
   * A second name of a file may be outside of what the agent was given, and its content then is, too. `inside`: all its
   * names must be in this tree. `any`: the tree is the user's own.
   */
  readonly hardLinks: 'inside' | 'any'
  skips?(path: string): boolean
  /** Entries that are never taken, anywhere in the tree. */
  readonly withheld?: WithheldSeen | undefined
}

const MOST_LEFT_OUT = 100

export async function selectFiles(root: Directory, options: SelectOptions): Promise<Selection> {
  const { patterns, limits, pace, skips, withheld } = options
  const files: FoundFile[] = []
  const leftOut: WorkspaceProblem[] = []
  const otherTraps: WorkspaceProblem[] = []
  const firstOnTheWay = new Map<OutputPattern, WorkspaceProblem>()
  const matched = new Set<OutputPattern>()
  const names = new Map<string, number>()

  const note = (list: WorkspaceProblem[], why: WorkspaceProblem) => {
    if (list.length < MOST_LEFT_OUT) list.push(why)
  }
  const noteOnTheWay = (segments: readonly string[], why: WorkspaceProblem) => {
    for (const pattern of patterns ?? []) {
      if (!firstOnTheWay.has(pattern) && pattern.leadsThrough(segments)) firstOnTheWay.set(pattern, why)
    }
  }
  const isWithheld = (stat: BigIntStats, shown: string) => {
    const why = withheld?.whyNot(stat, shown)
    if (why !== undefined) note(leftOut, why)
    return why !== undefined
  }
  const means = (segments: readonly string[]) => patterns?.filter((pattern) => pattern.takes(segments))

  await walkTree(root, {
    limits,
    pace,
    ...(skips === undefined ? {} : { skips }),
    // Does not enter it at all: runs may hold more files than the limit.
    enters: ({ shown, stat }) => !isWithheld(stat, shown),
    file({ path, segments, shown, stat }) {
      if (isWithheld(stat, shown)) return
      if (stat.nlink > 1n) names.set(identity(stat), (names.get(identity(stat)) ?? 0) + 1)
      const by = means(segments)
      if (by !== undefined && by.length === 0) return
      for (const pattern of by ?? []) matched.add(pattern)
      files.push({ path, segments, shown, stat })
    },
    trap(why, segments) {
      const isMeant = segments === undefined || means(segments)?.length !== 0
      note(isMeant ? leftOut : otherTraps, why)
      if (segments !== undefined) noteOnTheWay(segments, why)
    },
  })

  const escapes = (stat: BigIntStats) => stat.nlink > BigInt(names.get(identity(stat)) ?? 1)
  const kept = options.hardLinks === 'any' ? files : files.filter(({ stat }) => !escapes(stat))
  if (kept.length < files.length) {
    for (const { shown, segments, stat } of files) {
      if (!escapes(stat)) continue
      const why = hardLink(shown)
      note(leftOut, why)
      noteOnTheWay(segments, why)
    }
  }
  const remaining = kept.length === files.length ? matched : matchedBy(kept, patterns ?? [])
  const unmatched = (patterns ?? []).filter((each) => !remaining.has(each))
  // A trap on its way may be the reason why a pattern finds nothing.
  const onTheWay = unmatched.flatMap((pattern) => firstOnTheWay.get(pattern) ?? [])
  return {
    files: kept,
    leftOut: unmatched.length === 0 ? leftOut : [...new Set([...onTheWay, ...leftOut, ...otherTraps])],
    unmatched: unmatched.map(({ pattern }) => pattern),
  }
}

/** Checked before anything is read: a sparse file takes no room on the disk and hours to read. */
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
  const above = segments.slice(0, -1)
  const parent = above.length === 0 ? { ok: true as const, value: root } : openFolders(root, above)
  if (!parent.ok) throw new ProblemError(parent.error)
  const name = segments.at(-1)!
  const opened = openSeen(parent.value, name, stat)
  const other = opened.ok ? undefined : lookAt(parent.value, name)
  if (parent.value !== root) parent.value.close()
  if (!opened.ok) {
    // The entry that replaced it explains more.
    throw new ProblemError((other === undefined ? undefined : trapOf(shown, other)) ?? opened.error)
  }
  const now = opened.value.stat
  if (now.nlink === stat.nlink) return opened.value
  closeSync(opened.value.fd)
  return refuse('changed', shown, 'was replaced while it was being read')
}

function identity({ dev, ino }: Pick<BigIntStats, 'dev' | 'ino'>): string {
  return `${dev}:${ino}`
}

function hardLink(shown: string): WorkspaceProblem {
  return problem(
    'hard_link',
    shown,
    'has a hard link outside of this folder, so it may belong to someone else',
  )
}

function matchedBy(files: readonly FoundFile[], patterns: readonly OutputPattern[]): Set<OutputPattern> {
  return new Set(patterns.filter((pattern) => files.some(({ segments }) => pattern.takes(segments))))
}
