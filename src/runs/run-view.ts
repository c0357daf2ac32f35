import type { z } from 'zod'
import type { ReadEntry } from '../audit/store.ts'
import type { RUN_ROUTES, RunUpdate } from './api.ts'
import {
  isRunOpen,
  isSettled,
  type NodeState,
  type RunCost,
  type RunHead,
  type RunNode,
  sumCosts,
} from './run.ts'
import { reportFile, workspaceOf } from './run-folder.ts'
import type { SeenRun } from './store.ts'

type WireRun = z.output<typeof RUN_ROUTES.runs.answer>['runs'][number]
type WireWholeRun = z.output<typeof RUN_ROUTES.run.answer>
type WireNode = WireWholeRun['nodes'][number]

const iso = (at: number) => new Date(at).toISOString()
const SUMMARY = 2000

/** Converts a run without its agents. */
export function wireRun({ id, folder, runFolder, by, run, trouble }: SeenRun, now: number): WireRun {
  const { head, graph, nodes } = run
  const { outcome, begunAt, endedAt, cancelled, reportPending, reportFault } = head
  const isOpen = isRunOpen(head)
  return {
    id,
    name: graph.plan.name,
    ...(graph.plan.goal === '' ? {} : { goal: graph.plan.goal }),
    state: outcome === null || isOpen ? 'running' : outcome,
    ...(reportPending ? { gathering: true } : {}),
    folder,
    place: runFolder,
    round: head.round,
    by,
    created_at: iso(head.createdAt),
    ...(begunAt === null ? {} : { begun_at: iso(begunAt) }),
    ...(!isOpen && endedAt !== null ? { ended_at: iso(endedAt) } : {}),
    elapsed_ms: begunAt === null ? 0 : (endedAt ?? now) - begunAt,
    agents: graph.plan.agents.length,
    counts: countsOf(nodes.values()),
    concurrency: graph.plan.concurrency,
    ...(cancelled === null ? {} : { cancelled: `${cancelled.by}: ${cancelled.reason}` }),
    ...(trouble === undefined ? {} : { trouble }),
    ...(reportFault === undefined ? {} : { report_fault: reportFault }),
  }
}

function countsOf(nodes: Iterable<RunNode>): Partial<Record<NodeState, number>> {
  const counts: Partial<Record<NodeState, number>> = {}
  for (const { state } of nodes) counts[state] = (counts[state] ?? 0) + 1
  return counts
}

interface NodeContext {
  /** The human request about it. */
  requestId?: string
  /** Why it is blocked. */
  blockedBy?: string
}

/** Converts a run with all its agents. */
export async function wireWholeRun(
  seen: SeenRun,
  now: number,
  around: (node: RunNode) => Promise<NodeContext>,
): Promise<WireWholeRun> {
  const { head, graph, nodes } = seen.run
  const hasReport = !isRunOpen(head) && head.reportFault === undefined
  const shown: WireNode[] = []
  for (const { name } of graph.plan.agents) {
    const node = nodes.get(name)!
    shown.push(wireNode(seen, node, now, await around(node)))
  }
  return {
    ...wireRun(seen, now),
    ...(hasReport ? { report: reportFile(seen.runFolder, 'md') } : {}),
    nodes: shown,
  }
}

function wireNode(seen: SeenRun, node: RunNode, now: number, around: NodeContext): WireNode {
  const { run, runFolder } = seen
  const { requestId } = around
  const { name, state, progress, result, attempts, settledAt } = node
  const agent = run.graph.agents.get(name)!
  const here = attempts.filter(({ orderedAt }) => orderedAt >= (run.head.begunAt ?? 0))
  const began = here[0]?.startedAt ?? here[0]?.orderedAt
  const { task } = seen.record(name)
  const spent = spentIn(here.flatMap((one) => (one.spent === null ? [] : [one.spent])))
  return {
    name,
    state,
    ...(node.reason === '' ? {} : { reason: node.reason }),
    depends_on: run.graph.needs.get(name)!.map(({ from }) => from),
    waits_for: waitsFor(seen, node, around),
    ...(progress === null || progress.step === '' ? {} : { step: progress.step }),
    ...(progress === null ? {} : { progress: { done: progress.done, total: progress.total } }),
    attempt: node.attempt,
    tries: node.tries,
    max_tries: agent.retries + 1,
    cached: node.cached,
    ...(began === undefined ? {} : { started_at: iso(began), elapsed_ms: (settledAt ?? now) - began }),
    ...(settledAt === null ? {} : { ended_at: iso(settledAt) }),
    workspace: workspaceOf(runFolder, name),
    ...(requestId === undefined ? {} : { request_id: requestId }),
    ...(task === undefined ? {} : { task_id: task }),
    ...(result === null || result.summary === '' ? {} : { summary: result.summary.slice(0, SUMMARY) }),
    outputs: (result?.outputs ?? []).map(({ path, bytes, sha256 }) => ({ path, bytes, sha256 })),
    ...(spent === undefined ? {} : { spent }),
    attempts: here.map(({ number, outcome, why, startedAt, endedAt }) => ({
      number,
      outcome,
      why,
      ...(startedAt === null ? {} : { started_at: iso(startedAt) }),
      ...(endedAt === null ? {} : { ended_at: iso(endedAt) }),
    })),
  }
}

function waitsFor(
  { run }: SeenRun,
  { name, state, due }: RunNode,
  { requestId, blockedBy }: NodeContext,
): string[] {
  if (isSettled(state)) return []
  switch (state) {
    case 'waiting': {
      const open = run.graph.needs.get(name)!.filter(({ from }) => !isSettled(run.nodes.get(from)!.state))
      return open.map(({ from }) => from)
    }
    case 'ready':
      return ['a free slot']
    case 'retrying':
      return due === null ? ['the end of the previous attempt'] : [`the next attempt, at ${iso(due.at)}`]
    case 'fixing':
      return [`${run.graph.agents.get(name)!.fixer ?? 'somebody'} to correct its inputs`]
    case 'asking':
      return [`a person to decide${requestId === undefined ? '' : ` (${requestId})`}`]
    case 'running':
      return blockedBy === undefined ? [] : [blockedBy]
    default:
      return []
  }
}

function spentIn(all: readonly RunCost[]): WireNode['spent'] {
  if (all.length === 0) return undefined
  const { inputTokens, outputTokens, cost } = sumCosts(all)
  return { input_tokens: inputTokens, output_tokens: outputTokens, ...(cost === null ? {} : { cost }) }
}

type WireEventOf<T extends RunUpdate['type']> = Extract<RunUpdate, { type: T }>

/** Audit entries that become events of their own type, with the fields that the events take from their data. */
const EVENTS: Record<string, readonly [type: RunUpdate['type'], ...fields: string[]]> = {
  'run.begun': ['begun', 'round', 'agents'],
  'run.node': ['node', 'node', 'state', 'attempt', 'cached', 'reason'],
  'run.progress': ['progress', 'node', 'attempt', 'step', 'done', 'total'],
  'human.asked': ['asked', 'node', 'request_id', 'awaits'],
}

/** Converts an audit entry about a run into an event. The engine wrote its data. */
export function runEventOf({ seq, at, type: entry, text, data }: ReadEntry): RunUpdate {
  const [type, ...fields] = EVENTS[entry] ?? ['note', 'node']
  const said: Record<string, unknown> = { awaits: true, ...data }
  const taken = fields.filter((field) => said[field] !== undefined).map((field) => [field, said[field]])
  return { type, seq, at, run_id: said.run_id, text, ...Object.fromEntries(taken) } as RunUpdate
}

/** An event that is not stored. */
export function noticeOfRun(id: string, text: string, seq: number, now: number): WireEventOf<'note'> {
  return { type: 'note', seq, at: new Date(now).toISOString(), run_id: id, text: `${id}: ${text}` }
}

/** The last event of a round. */
export function endOfRun({ id, outcome, round, endedAt }: RunHead, seq: number): WireEventOf<'end'> {
  const at = new Date(endedAt!).toISOString()
  return { type: 'end', seq, at, run_id: id, text: `${id} ended: ${outcome}`, outcome: outcome!, round }
}
