import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { findTeamLocation, searchUpwards } from './connection.ts'
import type { TeamLocation } from './team-location.ts'

/**
 * A team without agents, for plans of commands and people. Port 0, because many folders may have such a team. Files
 * that earlier versions wrote are recognized by this exact text.
 */
export const NO_AGENTS = `# Made by orc run, for plans that need no team. Put an orc.yaml beside the plan to have one.
agents: { nobody: {} }
service: { port: 0 }
`

/** The team that runs a plan: the one that other commands use here, else the one around the plan, else one without agents. */
export function locationForPlan(location: TeamLocation, folder: string): TeamLocation {
  if (location.configFile !== undefined || location.stateFolder !== undefined) return location
  return findTeamLocation(searchUpwards(folder) ?? join(folder, '.orc', 'orc.yaml'))
}

/** True for the generated team: a configuration needs one agent, so its `nobody` is a placeholder. */
export function hasNoAgents(location: TeamLocation): boolean {
  if (!isMadeForPlans(location)) return false
  return !existsSync(location.configFile) || readFileSync(location.configFile, 'utf8') === NO_AGENTS
}

function isMadeForPlans(location: TeamLocation): location is Required<TeamLocation> {
  const { configFile, stateFolder } = location
  return configFile !== undefined && stateFolder !== undefined && configFile === join(stateFolder, 'orc.yaml')
}

/** Called only before something runs: looking at a plan leaves no files behind. */
export async function makeTeamWithoutAgents(location: TeamLocation): Promise<void> {
  if (!isMadeForPlans(location) || existsSync(location.configFile)) return
  const { configFile, stateFolder } = location
  const { makeStateFolder } = await import('../../config/config.ts')
  makeStateFolder(stateFolder)
  writeFileSync(configFile, NO_AGENTS)
}

/** The `--config` option that a command typed in this folder needs to reach that team. */
export function optionFor(location: TeamLocation): string {
  const here = findTeamLocation()
  const isSame = location.configFile === undefined || here.configFile === location.configFile
  if (isSame || process.env.ORC_URL !== undefined) return ''
  return ` --config ${relative(process.cwd(), location.configFile)}`
}
