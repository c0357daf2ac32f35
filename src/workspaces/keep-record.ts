import { realpathSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { allOrNone, type TakeBack, takingBack } from './all-or-none.ts'
import { type ListedFolder, listArchive, writeArchive } from './archive.ts'
import { makeWithParents, removeFolder } from './folder.ts'
import type { Limits } from './limits.ts'
import { attempt, errnoOf, failed, nameProblems, type Outcome, type Problem, problem } from './problem.ts'
import { type AgentFolder, copySideBySide } from './side-by-side.ts'
import { type FoundWorktree, WORKTREE } from './worktree.ts'

export interface RecordWanted {
  readonly agents: readonly (AgentFolder & { readonly worktrees?: readonly FoundWorktree[] })[]
  readonly report: string
  readonly limits: Limits
  /** A new file for the report. */
  readonly reportFile?: string
  readonly archive?: string
  readonly keepOutputsIn?: string
  /** What the archive or the outputs cannot hold may be lost. */
  readonly allowLoss?: boolean
  readonly signal?: AbortSignal
}

export interface KeptRecord {
  /** What is in neither the archive nor the outputs, each with why. */
  readonly leftOut: readonly Problem[]
  /** For whoever cannot use it after all. */
  readonly undo: TakeBack
}

/**
 * What stays of workspaces that are dissolved, as far as it is wanted: all of it, or nothing, so that it can be tried again.
 * The archive comes last, because it appears whole or not at all.
 */
export async function keepRecord(wanted: RecordWanted): Promise<Outcome<KeptRecord>> {
  const kept = await allOrNone((made) => keepParts(wanted, made))
  if (!kept.ok) return kept
  const { value: leftOut, undo } = kept.value
  return { ok: true, value: { leftOut, undo } }
}

async function keepParts(wanted: RecordWanted, made: TakeBack[]): Promise<Outcome<readonly Problem[]>> {
  const { agents, limits, report, reportFile, archive, keepOutputsIn, allowLoss, signal } = wanted
  const options = { limits, ...(signal === undefined ? {} : { signal }) }
  const leftOut: Problem[] = []
  const listed = archive === undefined ? undefined : await listAgents(archive, wanted)
  if (listed?.ok === false) return listed
  leftOut.push(...(listed?.value.flatMap((folder) => folder.leftOut) ?? []))
  // Before the outputs are copied, which can take long.
  if (archive !== undefined && leftOut.length > 0 && !allowLoss) return incomplete(archive, leftOut)

  if (reportFile !== undefined) {
    const written = await attempt(reportFile, () => writeReport(reportFile, report))
    if (!written.ok) return written
    made.push(takingBack(reportFile, () => rmSync(reportFile, { force: true })))
  }
  if (keepOutputsIn !== undefined) {
    const copied = await copySideBySide(agents, keepOutputsIn, options)
    if (!copied.ok) return copied
    made.push(copied.value.undo)
    const notCopied = copied.value.leftOut.flat()
    if (notCopied.length > 0 && !allowLoss) return incomplete(keepOutputsIn, notCopied)
    leftOut.push(...notCopied)
  }
  if (archive !== undefined && listed !== undefined) {
    const folder = await attempt(archive, () => makeWithParents(dirname(archive)))
    if (!folder.ok) return folder
    const first = folder.value
    if (first !== undefined) made.push(takingBack(first, () => removeFolder(first)))
    const texts = [{ path: 'report.md', text: report }]
    const archived = await writeArchive({ file: archive, folders: listed.value, texts, ...options })
    if (!archived.ok) return archived
    made.push(takingBack(archive, () => rmSync(archive, { force: true })))
  }
  return { ok: true, value: leftOut }
}

/** Never over a file that is there. On a full disk a part of it may have been written. */
function writeReport(file: string, report: string): void {
  try {
    writeFileSync(file, report, { flag: 'wx' })
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') rmSync(file, { force: true })
    throw error
  }
}

/** Worktrees are git's, and workspace/ is the agent's own. */
function listAgents(
  file: string,
  { agents, limits, signal }: RecordWanted,
): Promise<Outcome<readonly ListedFolder[]>> {
  const folders = agents.map(({ name, workspace, worktrees = [] }) => {
    const folder = realpathSync(workspace)
    const skipped = new Set(['workspace', WORKTREE].map((entry) => join(folder, entry)))
    for (const { path } of worktrees) skipped.add(path)
    return { folder, prefix: name, skips: (path: string) => skipped.has(join(folder, path)) }
  })
  return listArchive(folders, { file, limits, ...(signal === undefined ? {} : { signal }) })
}

/** An objection, told while nothing is lost yet. */
function incomplete(place: string, leftOut: readonly Problem[]) {
  const what = `would not hold all, and the rest would be lost: ${nameProblems(leftOut)}`
  return failed(problem('invalid', place, what))
}
