import { existsSync, realpathSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { AppError } from '../../base/errors.ts'
import { findRunProcesses } from '../../runs/processes.ts'
import { findTeamLocation, searchUpwards } from '../connection/connection.ts'
import { locationForPlan } from '../connection/plan-team.ts'
import { reachRuns } from '../connection/stored-runs.ts'
import type { TeamLocation } from '../connection/team-location.ts'
import type { RunShown } from './runs/run-state.ts'

/** What is known of the run that a workspace belongs to, besides what is in its files. */
export interface OwningRun {
  id: string
  /** Its folder, without links. */
  folder: string
  /** Undefined where neither its service nor its store would tell. */
  shown?: RunShown
  /** A service drives it, and can be asked to stop it. */
  isDriven: boolean
  /** What of it lives, by agent, even where its service was killed. */
  processes: ReadonlyMap<string, readonly number[]>
}

/** Undefined: it is no run's. What the run knows counts more than a status.json, which a command need not touch (S4.2). */
export async function findOwningRun(location: TeamLocation, path: string): Promise<OwningRun | undefined> {
  const folder = folderOfRun(path)
  const [id] = /^run_\d+/.exec(basename(folder ?? '')) ?? []
  if (folder === undefined || id === undefined) return undefined
  let owning: OwningRun | undefined
  for (const team of teamsFor(location, folder)) {
    const found = await askForRun(team, id)
    // One of the same name in another folder: the state of this one is gone, or it is another team's.
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

/** The team that is meant here, and the one around the folder, whose run it is if it is not the first one's. */
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
    // Files can be looked at by those whom no service and no store would answer.
    if (error instanceof AppError || (error as { code?: unknown }).code !== undefined) return undefined
    throw error
  }
}
