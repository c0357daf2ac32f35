import { dirname } from 'node:path'
import { writeArchive } from './archive.ts'
import { makeWithParents } from './folder.ts'
import type { Limits } from './limits.ts'
import { attempt, type Outcome, type Problem } from './problem.ts'
import { type AgentFolder, copySideBySide, type SideBySide } from './side-by-side.ts'
import { WORKTREE } from './worktree.ts'

export interface RecordWanted {
  readonly agents: readonly AgentFolder[]
  readonly report: string
  readonly limits: Limits
  readonly archive?: string
  readonly keepOutputsIn?: string
  readonly signal?: AbortSignal
}

/**
 * What stays of workspaces that are dissolved, as far as it is wanted: all of it, or nothing, so that it can be tried again.
 * The archive comes last, because it appears whole or not at all. Says what is in neither.
 */
export async function keepRecord(wanted: RecordWanted): Promise<Outcome<readonly Problem[]>> {
  const { agents, limits, archive, keepOutputsIn, signal } = wanted
  const options = { limits, ...(signal === undefined ? {} : { signal }) }
  let outputs: SideBySide | undefined
  if (keepOutputsIn !== undefined) {
    const copied = await copySideBySide(agents, keepOutputsIn, options)
    if (!copied.ok) return copied
    outputs = copied.value
  }
  const leftOut = outputs?.leftOut.flat() ?? []
  if (archive === undefined) return { ok: true, value: leftOut }
  let isWhole = false
  try {
    const archived = await archiveAll(archive, wanted)
    isWhole = archived.ok
    return archived.ok ? { ok: true, value: [...archived.value, ...leftOut] } : archived
  } finally {
    if (!isWhole) await outputs?.undo()
  }
}

async function archiveAll(
  file: string,
  { agents, report, limits, signal }: RecordWanted,
): Promise<Outcome<readonly Problem[]>> {
  const made = await attempt(file, () => makeWithParents(dirname(file)))
  if (!made.ok) return made
  const skips = (entry: string) => entry === 'workspace' || entry === WORKTREE
  const folders = agents.map(({ name, workspace }) => ({ folder: workspace, prefix: name, skips }))
  const texts = [{ path: 'report.md', text: report }]
  const cancel = signal === undefined ? {} : { signal }
  const archived = await writeArchive({ file, folders, texts, limits, ...cancel })
  return archived.ok ? { ok: true, value: archived.value.leftOut } : archived
}
