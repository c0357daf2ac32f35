import { readAttempts } from './attempts.ts'
import { type AgentRecord, formatReport, unmergedLines } from './dissolve-report.ts'
import { checkFolderRemovable, removeFolder } from './folder.ts'
import { keepRecord } from './keep-record.ts'
import type { Limits } from './limits.ts'
import { collectOutbox } from './outbox.ts'
import { failed, type Outcome, type Problem, problem } from './problem.ts'
import { readStatus } from './status-file.ts'
import { type FoundWorktree, removeWorktree } from './worktree.ts'
import { findUnmerged } from './worktree-unmerged.ts'

export interface DissolvedAgent {
  readonly name: string
  readonly workspace: string
  readonly worktree?: FoundWorktree
  /** How far it is, where the caller knows more than its status.json says. */
  readonly state?: string
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
    agents.map(async ({ name, workspace, worktree, state }) => {
      const status = readStatus(workspace)
      const outbox = await collectOutbox(workspace, { limits, ...(signal === undefined ? {} : { signal }) })
      const attempts = await readAttempts(workspace)
      const unmerged = worktree === undefined ? undefined : await findUnmerged(worktree)
      const problems = [
        ...(status.ok ? [] : [status.problem]),
        ...[outbox, attempts, ...(unmerged === undefined ? [] : [unmerged])].flatMap((outcome) =>
          outcome.ok ? [] : outcome.problems,
        ),
        ...(unmerged?.ok && unmerged.value.unseen !== undefined ? [unmerged.value.unseen] : []),
      ]
      return {
        name,
        state: state ?? (status.ok ? status.status.state : 'unknown'),
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
  const records = await surveyAgents(wanted)
  const against = wanted.agents.flatMap((agent, index) =>
    objections(agent, records[index]!, wanted.allowLoss ?? false),
  )
  if (against.length > 0) return failed(...against)

  const report = formatReport(wanted.title, records)
  for (const { workspace } of wanted.agents) checkFolderRemovable(workspace)
  const kept = await keepRecord({ ...wanted, report })
  if (!kept.ok) return kept

  const branchesKept: string[] = []
  for (const { workspace, worktree } of wanted.agents) {
    if (worktree !== undefined) {
      const { branchKept } = await removeWorktree(worktree)
      if (branchKept && worktree.branch !== undefined) branchesKept.push(worktree.branch)
    }
    await removeFolder(workspace, wanted.signal)
  }
  return { ok: true, value: { report, agents: records, leftOut: kept.value, branchesKept } }
}

function objections(agent: DissolvedAgent, record: AgentRecord, allowLoss: boolean): Problem[] {
  const { name, worktree } = agent
  if (agent.isRunning) return [problem('invalid', name, 'is still running: stop it first')]
  if (allowLoss || worktree === undefined) return []
  const { unmerged } = record
  const unseen = (why = '') =>
    problem(
      'invalid',
      name,
      `has a worktree that cannot be looked at, so that work in it could be lost${why}`,
    )
  if (unmerged === undefined) return [unseen()]
  // What git ignores is most often large and can be made again: it is told of in the report, and does not stop anyone.
  const lost = unmergedLines({ ...unmerged, commits: 0, ignored: [] }).map((line) => line.slice(2))
  return [
    ...(lost.length === 0
      ? []
      : [problem('invalid', name, `has work that would be lost: ${lost.join('; ')}`)]),
    ...(unmerged.unseen === undefined ? [] : [unseen(`: ${unmerged.unseen.message}`)]),
  ]
}
