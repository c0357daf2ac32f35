import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { findPlace, searchUpwards } from './connection.ts'
import type { Place } from './team-location.ts'

/** A team of nobody: commands, and people who are asked. A free port, as any number of folders may have one. */
export const NOBODY = `# Made by orc run, for plans that need no team. Put an orc.yaml beside the plan to have one.
agents: { nobody: {} }
service: { port: 0 }
`

/** Which team carries a plan out: the one meant by everything else here, else that around the plan, else one of nobody. */
export function placeForPlan(place: Place, folder: string): Place {
  if (place.configFile !== undefined || place.stateFolder !== undefined) return place
  return findPlace(searchUpwards(folder) ?? join(folder, '.orc', 'orc.yaml'))
}

/** Whether a plan has nobody to name there: the one agent of that team only stands for there being none. */
export function isTeamOfNobody(place: Place): boolean {
  if (!isMadeForPlans(place)) return false
  return !existsSync(place.configFile) || readFileSync(place.configFile, 'utf8') === NOBODY
}

function isMadeForPlans(place: Place): place is Required<Place> {
  const { configFile, stateFolder } = place
  return configFile !== undefined && stateFolder !== undefined && configFile === join(stateFolder, 'orc.yaml')
}

/** Only when something is about to run: to look at a plan leaves nothing behind. */
export async function makeTeamOfNobody(place: Place): Promise<void> {
  if (!isMadeForPlans(place) || existsSync(place.configFile)) return
  const { configFile, stateFolder } = place
  const { makeStateFolder } = await import('../../config/config.ts')
  makeStateFolder(stateFolder)
  writeFileSync(configFile, NOBODY)
}

/** What must be typed besides, so that a command from here is meant for that team. */
export function optionFor(place: Place): string {
  const here = findPlace()
  const isSame = place.configFile === undefined || here.configFile === place.configFile
  if (isSame || process.env.ORC_URL !== undefined) return ''
  return ` --config ${relative(process.cwd(), place.configFile)}`
}
