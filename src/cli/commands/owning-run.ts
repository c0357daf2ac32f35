import { existsSync, realpathSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { AppError } from '../../base/errors.ts'
import { findRunProcesses } from '../../runs/processes.ts'
import { findTeamLocation, searchUpwards } from '../connection/connection.ts'
import { locationForPlan } from '../connection/plan-team.ts'
import { reachRuns } from '../connection/stored-runs.ts'
import type { TeamLocation } from '../connection/team-location.ts'
import type { RunShown } from './runs/run-state.ts'

/** The run that a workspace belongs to. */
export interface OwningRun {
  id: string
  /** The real path of its folder. */
  folder: string
  /** Undefined if neither the service nor the store could be read. */
  shown?: RunShown
  /** True if a running service drives it and can stop it. */
  isDriven: boolean
  /** Live processes by agent, found even if the service was killed. */
  processes: ReadonlyMap<string, readonly number[]>
}

/** Undefined if no run owns the workspace. The run's state outranks status.json, which a command need not update (S4.2). */
export async function findOwningRun(location: TeamLocation, path: string): Promise<OwningRun | undefined> {
  const folder = folderOfRun(path)
  const [id] = /^run_\d+/.exec(basename(folder ?? '')) ?? []
  if (folder === undefined || id === undefined) return undefined
  let owning: OwningRun | undefined
  for (const team of teamsFor(location, folder)) {
    const found = await askForRun(team, id)
    // A run with the same id in another folder: this one belongs to another team, or its state was deleted.
    if (found !== undefined && !isSameFolder(found.shown.place, folder)) continue
    const { stateFolder } = team
    const processes = stateFolder === undefined ? new Map() : await findRunProcesses(stateFolder, id)
    if (found !== undefined) return { id, folder, ...found, processes }
    if (processes.size > 0) owning = { id, folder, isDriven: false, processes }
  }
  return owning
}

function folderOfRun(path: string): string | undefined {
  if (/^run_\d+(\.\d+)?$/.test(basename(path))) return path
  return path === dirname(path) ? undefined : folderOfRun(dirname(path))
}

/** The team that other commands use here, and the one around the folder if it differs. */
function teamsFor(location: TeamLocation, folder: string): TeamLocation[] {
  const meant = locationForPlan(location, folder)
  const around = searchUpwards(folder)
  return around === undefined || around === meant.configFile ? [meant] : [meant, findTeamLocation(around)]
}

function isSameFolder(one: string, other: string): boolean {
  return one === other || (existsSync(one) && realpathSync(one) === other)
}

async function askForRun(location: TeamLocation, id: string) {
  try {
    return await reachRuns(
      location,
      async (client) => ({ shown: await client.run(id), isDriven: true }),
      async (stored) => ({ shown: await stored.show(id), isDriven: false }),
    )
  } catch (error) {
    // The files can be shown without access to the service or the store.
    if (error instanceof AppError || (error as { code?: unknown }).code !== undefined) return undefined
    throw error
  }
}
