import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { findTeamLocation, searchUpwards } from './connection.ts'
import type { TeamLocation } from './team-location.ts'

/** A team of nobody: commands, and people who are asked. A free port, as any number of folders may have one. */
export const NOBODY = `# Made by orc run, for plans that need no team. Put an orc.yaml beside the plan to have one.
agents: { nobody: {} }
service: { port: 0 }
`

/** Which team carries a plan out: the one meant by everything else here, else that around the plan, else one of nobody. */
export function locationForPlan(location: TeamLocation, folder: string): TeamLocation {
  if (location.configFile !== undefined || location.stateFolder !== undefined) return location
  return findTeamLocation(searchUpwards(folder) ?? join(folder, '.orc', 'orc.yaml'))
}

/** Whether a plan has nobody to name there: the one agent of that team only stands for there being none. */
export function isTeamOfNobody(location: TeamLocation): boolean {
  if (!isMadeForPlans(location)) return false
  return !existsSync(location.configFile) || readFileSync(location.configFile, 'utf8') === NOBODY
}

function isMadeForPlans(location: TeamLocation): location is Required<TeamLocation> {
  const { configFile, stateFolder } = location
  return configFile !== undefined && stateFolder !== undefined && configFile === join(stateFolder, 'orc.yaml')
}

/** Only when something is about to run: to look at a plan leaves nothing behind. */
export async function makeTeamOfNobody(location: TeamLocation): Promise<void> {
  if (!isMadeForPlans(location) || existsSync(location.configFile)) return
  const { configFile, stateFolder } = location
  const { makeStateFolder } = await import('../../config/config.ts')
  makeStateFolder(stateFolder)
  writeFileSync(configFile, NOBODY)
}

/** What must be typed besides, so that a command from here is meant for that team. */
export function optionFor(location: TeamLocation): string {
  const here = findTeamLocation()
  const isSame = location.configFile === undefined || here.configFile === location.configFile
  if (isSame || process.env.ORC_URL !== undefined) return ''
  return ` --config ${relative(process.cwd(), location.configFile)}`
}
