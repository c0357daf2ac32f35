import type { AuditDraft } from '../audit/entry.ts'
import { ORCHESTRATOR } from '../base/agent.ts'
import { AppError } from '../base/errors.ts'
import type { RedactedExcerpt } from '../base/excerpt.ts'
import { formatId, parseId } from '../base/ids.ts'
import type { Reader, Tx } from '../store/store.ts'
import type { RunEvent } from './core/events-and-effects.ts'
import type { RunReduced } from './core/transition.ts'
import type { Plan } from './plan.ts'
import {
  EMPTY_NODE,
  isRunOpen,
  loadRun,
  type NodeResult,
  type NodeState,
  type Progress,
  type Run,
  type RunHead,
  type RunNode,
} from './run.ts'

/** Facts of a run that never change within a round. */
export interface RunFacts {
  readonly id: string
  /** The paths of the plan are relative to it. */
  readonly folder: string
  /** Folder of the workspaces, outputs and reports. */
  readonly runFolder: string
  readonly by: string
}

/** Facts about an agent's workspace: the inbox manifest and the worktree as JSON, and the task. Agents cannot change them. */
export interface NodeRecord {
  readonly inbox?: string
  readonly worktree?: string
  readonly task?: string
}

interface RunRecord extends RunFacts {
  readonly plan: Plan
  readonly head: RunHead
}

interface RunRow {
  id: number
  folder: string
  place: string
  started_by: string
  head: string
  plan: string
}

interface NodeRow {
  document: string
  inbox: string | null
  worktree: string | null
  task: number | null
}

export function insertRun(
  tx: Tx,
  daemon: string,
  { id, folder, runFolder, by, plan, head }: RunRecord,
  nodes: Iterable<RunNode>,
): void {
  const key = keyOf(id)
  tx.run(
    `INSERT INTO runs (id, daemon, name, state, folder, place, started_by, head, created_at, is_open)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      key,
      daemon,
      plan.name,
      stateOf(head),
      folder,
      runFolder,
      by,
      JSON.stringify(head),
      head.createdAt,
      Number(isRunOpen(head)),
    ],
  )
  // A separate table, because the plan may be large and the head is rewritten with each event.
  tx.run('INSERT INTO run_plans (run, plan) VALUES (?, ?)', [key, JSON.stringify(plan)])
  for (const node of nodes) updateNode(tx, key, node)
}

/** Stores a new round, with a plan and agents that may differ. */
export async function replaceRun(
  tx: Tx,
  { id, folder, plan, head }: Pick<RunRecord, 'id' | 'folder' | 'plan' | 'head'>,
  nodes: ReadonlyMap<string, RunNode>,
): Promise<void> {
  const key = keyOf(id)
  tx.run('UPDATE runs SET name = ?, folder = ? WHERE id = ?', [plan.name, folder, key])
  tx.run('UPDATE run_plans SET plan = ? WHERE run = ?', [JSON.stringify(plan), key])
  updateHead(tx, key, head)
  const stored = await tx.all<{ name: string }>('SELECT name FROM run_agents WHERE run = ?', [key])
  for (const { name } of stored) {
    if (!nodes.has(name)) tx.run('DELETE FROM run_agents WHERE run = ? AND name = ?', [key, name])
  }
  for (const node of nodes.values()) updateNode(tx, key, node)
}

export function updateHead(tx: Tx, key: number, head: RunHead): void {
  tx.run('UPDATE runs SET state = ?, head = ?, is_open = ? WHERE id = ?', [
    stateOf(head),
    JSON.stringify(head),
    Number(isRunOpen(head)),
    key,
  ])
}

export function updateNode(tx: Tx, key: number, node: RunNode): void {
  tx.run(
    `INSERT INTO run_agents (run, name, document) VALUES (?, ?, ?)
     ON CONFLICT (run, name) DO UPDATE SET document = excluded.document`,
    [key, node.name, writeNode(node)],
  )
}

/** Updates the given fields only. */
export function updateRecord(tx: Tx, key: number, name: string, { inbox, worktree, task }: NodeRecord): void {
  tx.run(
    `UPDATE run_agents SET inbox = COALESCE(?, inbox), worktree = COALESCE(?, worktree), task = COALESCE(?, task)
     WHERE run = ? AND name = ?`,
    [inbox ?? null, worktree ?? null, task === undefined ? null : parseId('task', task)!, key, name],
  )
}

export async function findRun(reader: Reader, id: string): Promise<RunRecord | undefined> {
  const row = await reader.get<RunRow>(
    'SELECT runs.*, run_plans.plan FROM runs JOIN run_plans ON run_plans.run = runs.id WHERE runs.id = ?',
    [parseId('run', id) ?? 0],
  )
  return row === undefined ? undefined : toRun(row)
}

/** Reads the head without the plan, which may be large. */
export async function readRunHead(reader: Reader, id: string): Promise<RunHead | undefined> {
  const row = await reader.get<{ head: string }>('SELECT head FROM runs WHERE id = ?', [
    parseId('run', id) ?? 0,
  ])
  return row === undefined ? undefined : readHead(row.head)
}

export async function readNodes(
  reader: Reader,
  id: string,
): Promise<{ node: RunNode; record: NodeRecord }[]> {
  const rows = await reader.all<NodeRow>(
    'SELECT document, inbox, worktree, task FROM run_agents WHERE run = ?',
    [keyOf(id)],
  )
  return rows.map(({ document, inbox, worktree, task }) => ({
    node: readNode(document),
    record: {
      ...(inbox === null ? {} : { inbox }),
      ...(worktree === null ? {} : { worktree }),
      ...(task === null ? {} : { task: formatId('task', task) }),
    },
  }))
}

/** The daemon that drives the run. Its audit chain has the entries of the run. */
export async function daemonOfRun(reader: Reader, id: string): Promise<string | undefined> {
  const row = await reader.get<{ daemon: string }>('SELECT daemon FROM runs WHERE id = ?', [
    parseId('run', id) ?? 0,
  ])
  return row?.daemon
}

/** Open runs of this daemon, oldest first. */
export async function openRunIds(reader: Reader, daemon: string): Promise<string[]> {
  const rows = await reader.all<{ id: number }>(
    'SELECT id FROM runs WHERE daemon = ? AND is_open = 1 ORDER BY id',
    [daemon],
  )
  return rows.map(({ id }) => formatId('run', id))
}

/** The newest `limit` runs, oldest first. `open`: only those that have not ended or have no report yet. */
export async function runIds(reader: Reader, which: 'open' | 'all', limit: number): Promise<string[]> {
  const where = which === 'open' ? 'WHERE is_open = 1' : ''
  const rows = await reader.all<{ id: number }>(`SELECT id FROM runs ${where} ORDER BY id DESC LIMIT ?`, [
    limit,
  ])
  return rows.map(({ id }) => formatId('run', id)).reverse()
}

function toRun(row: RunRow): RunRecord {
  return {
    id: formatId('run', row.id),
    folder: row.folder,
    runFolder: row.place,
    by: row.started_by,
    plan: JSON.parse(row.plan) as Plan,
    head: readHead(row.head),
  }
}

function stateOf({ outcome }: RunHead): string {
  return outcome ?? 'running'
}

function keyOf(id: string): number {
  return parseId('run', id)!
}

const KEYS = Object.keys(EMPTY_NODE) as (keyof typeof EMPTY_NODE)[]

/** Leaves out empty fields. `readNode` fills them in, as well as fields that a newer version adds. */
function writeNode(node: RunNode): string {
  const stored: Record<string, unknown> = { name: node.name, state: node.state }
  for (const key of KEYS) {
    const value = node[key]
    if (value === EMPTY_NODE[key] || (key === 'attempts' && node.attempts.length === 0)) continue
    stored[key] = value
  }
  return JSON.stringify(stored)
}

function readNode(document: string): RunNode {
  // Earlier versions called the previous result `kept`.
  const { kept, ...stored } = JSON.parse(document) as Pick<RunNode, 'name' | 'state'> & { kept?: NodeResult }
  return { ...EMPTY_NODE, ...(kept === undefined ? {} : { previousResult: kept }), ...stored }
}

function readHead(document: string): RunHead {
  // Earlier versions called `reportPending` `reportOwed`.
  const { reportOwed, ...stored } = JSON.parse(document) as RunHead & { reportOwed?: boolean }
  return reportOwed === undefined ? stored : { ...stored, reportPending: reportOwed }
}

/** A run for display. */
export interface SeenRun extends RunFacts {
  readonly run: Run
  /** Why it is blocked by something other than an agent, such as a full disk. */
  readonly trouble?: string | undefined
  record(node: string): NodeRecord
}

interface StoredRun extends SeenRun {
  readonly records: Map<string, NodeRecord>
}

/** Reads a run from the store, whether or not a service drives it. */
export async function seeStoredRun(reader: Reader, id: string): Promise<StoredRun | undefined> {
  const found = await findRun(reader, id)
  if (found === undefined) return undefined
  const nodes = await readNodes(reader, id)
  const records = new Map(nodes.map(({ node, record }) => [node.name, record]))
  const { plan, head, ...facts } = found
  const run = loadRun({ plan, head, nodes: nodes.map(({ node }) => node) })
  return { ...facts, run, records, record: (node) => records.get(node) ?? {} }
}

export function noSuchRun(id: string): AppError {
  return new AppError('NOT_FOUND', `There is no run ${id.slice(0, 100)}`, {
    hint: 'Run `orc run list` to see the runs.',
  })
}

/** Short states that every agent goes through. They get no audit entry. */
const UNAUDITED: ReadonlySet<NodeState> = new Set(['waiting', 'ready', 'preparing'])

const REASON_CHARACTERS = 2000

/** Returns the audit entries for an event, which also feed the event stream. `run` is the state before the event. */
export function auditEntriesOf(
  run: Run,
  event: RunEvent,
  { state: { head, nodes }, effects }: Extract<RunReduced, { ok: true }>,
  cut: RedactedExcerpt,
): AuditDraft[] {
  const entries: AuditDraft[] = []
  const { id, round } = head
  const { name, agents } = run.graph.plan
  if (run.head.begunAt === null && head.begunAt !== null) {
    const text = `${id} (${name}) begins${round > 1 ? ` round ${round}` : ''}: ${agents.length} ${agents.length === 1 ? 'agent' : 'agents'}`
    entries.push(entry(id, 'begun', text, { name, round, agents: agents.length }))
  }
  if (event.type === 'restarted')
    entries.push(entry(id, 'noted', `${id}: the service is back, and the run continues`, {}))
  if (event.type === 'cancelled' || event.type === 'run_timed_out') {
    const { by, reason } = head.cancelled!
    entries.push(entry(id, 'cancelling', `${id} is cancelled by ${by}: ${cut(reason)}`, { by }, by))
  }
  for (const node of nodes) {
    const before = run.nodes.get(node.name)!
    if (isAudited(before, node)) entries.push(moved(id, node, cut))
    else if (node.progress !== null && isNewProgress(before.progress, node.progress))
      entries.push(stepped(id, node, cut))
  }
  for (const effect of effects) {
    if (effect.type === 'note') entries.push(noted(id, effect.node, cut(effect.text, REASON_CHARACTERS)))
  }
  const { outcome, settled } = head
  if (run.head.outcome === null && outcome !== null) {
    const counts = Object.entries(settled).filter(([, count]) => count > 0)
    const states = counts.map(([state, count]) => `${count} ${state}`).join(', ')
    const text = `${id} (${name}): all agents have ended: ${outcome} (${states})`
    entries.push(entry(id, 'ended', text, { name, round, outcome, ...settled }))
  }
  if (event.type === 'report_written') {
    entries.push(entry(id, 'reported', `${id}: the report of round ${round} is written`, { round }))
  }
  if (event.type === 'report_failed') {
    const text = `${id}: the report of round ${round} could not be written: ${cut(event.why, REASON_CHARACTERS)}`
    entries.push(entry(id, 'reported', text, { round, written: false }))
  }
  return entries
}

export function noted(run: string, node: string | null, text: string): AuditDraft {
  return entry(
    run,
    'noted',
    `${run}${node === null ? '' : ` ${node}`}: ${text}`,
    node === null ? {} : { node },
  )
}

function isAudited(before: RunNode, { state, attempt }: RunNode): boolean {
  return !UNAUDITED.has(state) && (state !== before.state || attempt !== before.attempt)
}

function isNewProgress(before: Progress | null, { step, done, total }: Progress): boolean {
  return before === null || before.step !== step || before.done !== done || before.total !== total
}

function moved(run: string, node: RunNode, cut: RedactedExcerpt): AuditDraft {
  const { name, state, attempt, cached } = node
  const reason = cut(node.reason, REASON_CHARACTERS)
  const why = reason === '' ? '' : `: ${reason}`
  const which = state === 'running' ? ` (attempt ${attempt})` : ''
  return entry(run, 'node', `${run} ${name} is ${state}${which}${why}`, {
    node: name,
    state,
    attempt,
    ...(cached ? { cached } : {}),
    ...(reason === '' ? {} : { reason }),
  })
}

function stepped(run: string, { name, attempt, progress }: RunNode, cut: RedactedExcerpt): AuditDraft {
  const { step, done, total } = progress!
  const far = total === 0 ? '' : ` (${done} of ${total})`
  const shown = cut(step)
  return entry(run, 'progress', `${run} ${name}: ${shown}${far}`, {
    node: name,
    attempt,
    step: shown,
    done,
    total,
  })
}

function entry(
  run: string,
  what: string,
  text: string,
  data: Record<string, unknown>,
  actor = ORCHESTRATOR,
): AuditDraft {
  return { type: `run.${what}`, class: 'internal', actor, text, data: { run_id: run, ...data } }
}
