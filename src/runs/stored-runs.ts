import { AppError } from '../base/errors.ts'
import type { HumanRequestRow } from '../people/people.ts'
import type { Reader } from '../store/store.ts'
import { loadRun, type Run } from './core/run-state.ts'
import { type AskedByRun, findAsked } from './requests.ts'
import { findRun, type NodeRecord, type RunFacts, readNodes, runIds } from './store.ts'

/** A run for display. */
export interface SeenRun extends RunFacts {
  readonly run: Run
  /** Why it is blocked by something other than an agent: a full disk. */
  readonly trouble?: string | undefined
  record(node: string): NodeRecord
}

interface StoredRun extends SeenRun {
  readonly records: Map<string, NodeRecord>
}

/** Reads a run from the store, whether or not a service drives it. */
export async function seeStoredRun(reader: Reader, id: string): Promise<StoredRun | undefined> {
  const kept = await findRun(reader, id)
  if (kept === undefined) return undefined
  const nodes = await readNodes(reader, id)
  const records = new Map(nodes.map(({ node, record }) => [node.name, record]))
  const { plan, head, ...facts } = kept
  const run = loadRun({ plan, head, nodes: nodes.map(({ node }) => node) })
  return { ...facts, run, records, record: (node) => records.get(node) ?? {} }
}

export async function listStoredRuns(
  reader: Reader,
  which: 'open' | 'all',
  limit: number,
): Promise<SeenRun[]> {
  const seen = await Promise.all((await runIds(reader, which, limit)).map((id) => seeStoredRun(reader, id)))
  return seen.filter((one) => one !== undefined)
}

/** The request that asks people about an agent of a run. */
export async function findStoredRequest(
  reader: Reader,
  asked: AskedByRun,
): Promise<HumanRequestRow | undefined> {
  return await findAsked(reader, asked)
}

export function noSuchRun(id: string): AppError {
  return new AppError('NOT_FOUND', `There is no run ${id.slice(0, 100)}`, { hint: '`orc runs` lists them.' })
}
