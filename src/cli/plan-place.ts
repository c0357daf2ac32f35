import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { findPlace, searchUpwards } from './line.ts'
import type { Place } from './place.ts'

/** A team of nobody: commands, and people who are asked. A free port, as any number of folders may have one. */
const NOBODY = `# Made by orc run, for plans that need no team. Put an orc.yaml beside the plan to have one.
agents: { nobody: {} }
service: { port: 0 }
`

/** Which team carries a plan out: the one meant by everything else here, else that around the plan, else one of nobody. */
export function placeForPlan(place: Place, folder: string): Place {
  if (place.configFile !== undefined || place.stateFolder !== undefined) return place
  return findPlace(searchUpwards(folder) ?? join(folder, '.orc', 'orc.yaml'))
}

/** Only when something is about to run: to look at a plan leaves nothing behind. */
export function makeTeamOfNobody({ configFile, stateFolder }: Place): void {
  if (configFile === undefined || stateFolder === undefined || existsSync(configFile)) return
  if (configFile !== join(stateFolder, 'orc.yaml')) return
  mkdirSync(stateFolder, { recursive: true, mode: 0o700 })
  writeFileSync(configFile, NOBODY)
}

/** What must be typed besides, so that a command from here is meant for that team. */
export function optionFor(place: Place): string {
  const here = findPlace()
  const isSame = place.configFile === undefined || here.configFile === place.configFile
  if (isSame || process.env.ORC_URL !== undefined) return ''
  return ` --config ${relative(process.cwd(), place.configFile)}`
}
