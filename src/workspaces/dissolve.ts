import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { writeArchive } from './archive.ts'
import { readAttempts } from './attempts.ts'
import { type AgentRecord, formatReport, unmergedLines } from './dissolve-report.ts'
import { removeFolder } from './folder.ts'
import { copyOutbox } from './keep-outputs.ts'
import type { Limits } from './limits.ts'
import { collectOutbox } from './outbox.ts'
import { failed, type Outcome, type Problem, problem } from './problem.ts'
import { readStatus } from './status-file.ts'
import { findUnmerged, removeWorktree, WORKTREE, type Worktree } from './worktree.ts'

export interface DissolvedAgent {
  readonly name: string
  readonly workspace: string
  readonly worktree?: Worktree
  /** What the caller knows of its process; the status alone may be out of date. */
  readonly isRunning: boolean
}

export interface DissolveWanted {
  readonly title: string
  readonly agents: readonly DissolvedAgent[]
  readonly limits: Limits
  /** A .tar.gz that everything of record goes into first: the report, and each agent's folder without workspace/. */
  readonly archive?: string
  /** Where the outputs go, side by side: `{folder}/{agent}/…`. */
  readonly keepOutputsIn?: string
  /** The caller was told what would be lost, and wants it. */
  readonly allowLoss?: boolean
  readonly signal?: AbortSignal
}

export interface Dissolved {
  readonly report: string
  readonly agents: readonly AgentRecord[]
  /** What the archive and the kept outputs do not hold, each with why. */
  readonly leftOut: readonly Problem[]
  /** Branches that hold work which is on no other one. */
  readonly branchesKept: readonly string[]
}

/** What each agent did, without changing anything: for the report, and for what dissolving would lose. */
export async function surveyAgents({ agents, limits, signal }: DissolveWanted): Promise<AgentRecord[]> {
  return Promise.all(
    agents.map(async ({ name, workspace, worktree }) => {
      const status = readStatus(workspace)
      const outbox = await collectOutbox(workspace, { limits, ...(signal === undefined ? {} : { signal }) })
      const attempts = await readAttempts(workspace)
      const unmerged = worktree === undefined ? undefined : await findUnmerged(worktree)
      const problems = [
        ...(status.ok ? [] : [status.problem]),
        ...[outbox, attempts, ...(unmerged === undefined ? [] : [unmerged])].flatMap((outcome) =>
          outcome.ok ? [] : outcome.problems,
        ),
      ]
      return {
        name,
        status: status.ok ? status.status : undefined,
        outbox: outbox.ok ? outbox.value : undefined,
        attempts: attempts.ok ? attempts.value : [],
        unmerged: unmerged?.ok ? unmerged.value : undefined,
        problems,
      }
    }),
  )
}

/** Reports, archives, keeps outputs if asked, and only then removes. Refuses while one runs, and before work is lost. */
export async function dissolve(wanted: DissolveWanted): Promise<Outcome<Dissolved>> {
  const { agents, limits, archive, keepOutputsIn } = wanted
  const cancel = wanted.signal === undefined ? {} : { signal: wanted.signal }
  const records = await surveyAgents(wanted)
  const against = wanted.agents.flatMap((agent, index) =>
    objections(agent, records[index]!, wanted.allowLoss ?? false),
  )
  if (against.length > 0) return failed(...against)

  const report = formatReport(wanted.title, records)
  const leftOut: Problem[] = []
  if (archive !== undefined) {
    mkdirSync(dirname(archive), { recursive: true })
    const skips = (entry: string) => entry === 'workspace' || entry === WORKTREE
    const folders = agents.map(({ name, workspace }) => ({ folder: workspace, prefix: name, skips }))
    const texts = [{ path: 'report.md', text: report }]
    const archived = await writeArchive({ file: archive, folders, texts, limits, ...cancel })
    if (!archived.ok) return archived
    leftOut.push(...archived.value.leftOut)
  }
  if (keepOutputsIn !== undefined) {
    for (const { name, workspace } of agents) {
      const kept = await copyOutbox(workspace, join(keepOutputsIn, name), { limits, ...cancel })
      if (!kept.ok) return kept
      leftOut.push(...kept.value)
    }
  }

  const branchesKept: string[] = []
  for (const { workspace, worktree } of agents) {
    if (worktree !== undefined && (await removeWorktree(worktree)).branchKept)
      branchesKept.push(worktree.branch)
    await removeFolder(workspace, wanted.signal)
  }
  return { ok: true, value: { report, agents: records, leftOut, branchesKept } }
}

function objections(agent: DissolvedAgent, record: AgentRecord, allowLoss: boolean): Problem[] {
  const { name, worktree } = agent
  if (agent.isRunning) return [problem('invalid', name, 'is still running: stop it first')]
  if (allowLoss || worktree === undefined) return []
  if (record.unmerged === undefined) {
    return [
      problem('invalid', name, `has a worktree that cannot be looked at, so that work in it could be lost`),
    ]
  }
  const { looseCommits, uncommitted } = record.unmerged
  if (looseCommits === 0 && uncommitted.length === 0) return []
  const lost = unmergedLines({ ...record.unmerged, commits: 0 }).map((line) => line.slice(2))
  return [problem('invalid', name, `has work that would be lost: ${lost.join('; ')}`)]
}
