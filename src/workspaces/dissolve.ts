import { realpathSync } from 'node:fs'
import { relative } from 'node:path'
import { readAttempts } from './attempts.ts'
import { type AgentRecord, formatReport, type UnmergedIn, unmergedLines } from './dissolve-report.ts'
import { checkFolderRemovable, removeFolder } from './folder.ts'
import { keepRecord } from './keep-record.ts'
import type { Limits } from './limits.ts'
import { collectOutbox } from './outbox.ts'
import { attempt, failed, nameProblems, type Outcome, type Problem, problem } from './problem.ts'
import { readStatus } from './status-file.ts'
import { type FoundWorktree, releaseWorktree } from './worktree.ts'
import { findUnmerged } from './worktree-unmerged.ts'

export interface DissolvedAgent {
  readonly name: string
  readonly workspace: string
  /** All that its workspace holds, wherever in it. */
  readonly worktrees?: readonly FoundWorktree[]
  /** Why it may hold others that were not found. */
  readonly unseenWorktrees?: readonly Problem[]
  /** How far it is, where the caller knows more than its status.json says. */
  readonly state?: string
  /** What the caller knows of its process; the status alone may be out of date. */
  readonly isRunning: boolean
}

export interface DissolveWanted {
  readonly title: string
  readonly agents: readonly DissolvedAgent[]
  readonly limits: Limits
  /** A new file that the report goes into. */
  readonly reportFile?: string
  /** A .tar.gz that all of record goes into first: the report, and each agent's folder without workspace/ and worktrees. */
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
    agents.map(async ({ name, workspace, worktrees = [], unseenWorktrees = [], state }) => {
      const status = readStatus(workspace)
      const outbox = await collectOutbox(workspace, { limits, ...(signal === undefined ? {} : { signal }) })
      const attempts = await readAttempts(workspace)
      const surveyed = await surveyWorktrees(worktrees, workspace)
      const unseen = [...unseenWorktrees, ...surveyed.unseen]
      const problems = [
        ...(status.ok ? [] : [status.problem]),
        ...[outbox, attempts].flatMap((outcome) => (outcome.ok ? [] : outcome.problems)),
        ...(outbox.ok ? [outbox.value.summaryProblem ?? []].flat() : []),
        ...[outbox.ok ? outbox.value : undefined, ...(attempts.ok ? attempts.value : [])].flatMap(
          (reported) => reported?.errorReportProblem ?? [],
        ),
        ...unseen,
      ]
      return {
        name,
        state: state ?? (status.ok ? status.status.state : 'unknown'),
        status: status.ok ? status.status : undefined,
        outbox: outbox.ok ? outbox.value : undefined,
        attempts: attempts.ok ? attempts.value : [],
        unmerged: surveyed.unmerged,
        unseen,
        problems,
      }
    }),
  )
}

/** Unseen: why one could not be looked at, or the files in it not. */
async function surveyWorktrees(worktrees: readonly FoundWorktree[], workspace: string) {
  const unmerged: UnmergedIn[] = []
  const unseen: Problem[] = []
  for (const worktree of worktrees) {
    const found = await findUnmerged(worktree)
    if (!found.ok) {
      unseen.push(...found.problems)
      continue
    }
    unmerged.push({ worktree: relative(realpathSync(workspace), worktree.path), ...found.value })
    if (found.value.unseen !== undefined) unseen.push(found.value.unseen)
  }
  return { unmerged, unseen }
}

/**
 * Reports, archives, keeps outputs if asked, and only then removes. Refuses while one runs, and before work is lost. Called
 * off while it is at that, it leaves everything as it was; or, once something is gone, the record and the rest in its place.
 */
export async function dissolve(wanted: DissolveWanted): Promise<Outcome<Dissolved>> {
  return await dissolveAll(wanted).catch((error: unknown) => calledOff(wanted, error))
}

function calledOff({ title, signal }: DissolveWanted, error: unknown) {
  if (!signal?.aborted) throw error
  return failed(problem('called_off', title, 'was called off'))
}

async function dissolveAll(wanted: DissolveWanted): Promise<Outcome<Dissolved>> {
  const records = await surveyAgents(wanted)
  const against = wanted.agents.flatMap((agent, index) =>
    objections(agent, records[index]!, wanted.allowLoss ?? false),
  )
  if (against.length > 0) return failed(...against)
  const removable = await attempt(wanted.title, async () => {
    for (const { workspace } of wanted.agents) await checkFolderRemovable(workspace, wanted.signal)
  })
  if (!removable.ok) return removable

  const report = formatReport(wanted.title, records)
  const kept = await keepRecord({ ...wanted, report })
  if (!kept.ok) return kept
  let hasBegun = false
  const begin = () => (hasBegun = true)
  const removed = await attempt(wanted.title, () => removeAgents(wanted, begin)).catch((error: unknown) =>
    calledOff(wanted, error),
  )
  if (removed.ok) {
    const { leftOut } = kept.value
    return { ok: true, value: { report, agents: records, leftOut, branchesKept: removed.value } }
  }
  // Of what is gone, the record is all that is left.
  return failed(...removed.problems, ...(hasBegun ? [halfRemoved(wanted)] : await kept.value.undo()))
}

/** Gives the branches that stay. */
async function removeAgents({ agents, signal }: DissolveWanted, gone: () => void): Promise<string[]> {
  const branchesKept: string[] = []
  for (const { workspace, worktrees = [] } of agents) {
    await removeFolder(workspace, signal, gone)
    for (const worktree of worktrees) {
      const { branchKept } = await releaseWorktree(worktree)
      if (branchKept && worktree.branch !== undefined) branchesKept.push(worktree.branch)
    }
  }
  return branchesKept
}

function halfRemoved({ title, reportFile, archive, keepOutputsIn }: DissolveWanted): Problem {
  const kept = [reportFile, archive, keepOutputsIn].filter((place) => place !== undefined)
  const record = kept.length === 0 ? '' : `; its record stays: ${kept.join(', ')}`
  return problem('half_removed', title, `is removed in part, and what is left of it is in its place${record}`)
}

function objections({ name, isRunning }: DissolvedAgent, record: AgentRecord, allowLoss: boolean): Problem[] {
  if (isRunning) return [problem('invalid', name, 'is still running: stop it first')]
  if (allowLoss) return []
  // What git ignores is most often large and can be made again: it is told of in the report, and does not stop anyone.
  const lost = record.unmerged
    .flatMap((work) => unmergedLines({ ...work, commits: 0, ignored: [] }))
    .map((line) => line.slice(2))
  return [
    ...(lost.length === 0
      ? []
      : [problem('invalid', name, `has work that would be lost: ${lost.join('; ')}`)]),
    ...(record.unseen.length === 0
      ? []
      : [
          problem(
            'invalid',
            name,
            `has a worktree that cannot be looked at, so that work in it could be lost: ${nameProblems(record.unseen)}`,
          ),
        ]),
  ]
}
