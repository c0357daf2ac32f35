import { basename } from 'node:path'
import { AppError } from '../model/errors.ts'
import type { AgentRecord } from '../workspaces/dissolve-report.ts'
import { placeForPlan } from './plan-place.ts'
import type { RunShown } from './run-state.ts'
import { reachRuns } from './stored-runs.ts'
import type { Invocation } from './verb.ts'

/**
 * A command need not touch status.json (S4.2): where that says nothing, its run knows how far it is. What is no run, or
 * not of the team that is meant, stays as its files say.
 */
export async function withStatesOfRun(
  { place }: Invocation,
  folder: string,
  records: readonly AgentRecord[],
): Promise<AgentRecord[]> {
  const [id] = /^run_\d+/.exec(basename(folder)) ?? []
  const isSilent = records.some(({ status }) => status?.state === 'pending')
  if (id === undefined || !isSilent) return [...records]
  const run = await findRun(placeForPlan(place, folder), id)
  const states = new Map(run?.place === folder ? run.nodes.map(({ name, state }) => [name, state]) : [])
  return records.map((record) => {
    const state = states.get(record.name)
    if (record.status?.state !== 'pending') return record
    return state === 'running' || state === 'completed' || state === 'failed'
      ? { ...record, status: { ...record.status, state } }
      : record
  })
}

async function findRun(place: Invocation['place'], id: string): Promise<RunShown | undefined> {
  try {
    return await reachRuns(
      place,
      (client) => client.run(id),
      (stored) => stored.show(id),
    )
  } catch (error) {
    // Files can be looked at by those whom no service and no store would answer.
    if (error instanceof AppError || (error as { code?: unknown }).code !== undefined) return undefined
    throw error
  }
}
