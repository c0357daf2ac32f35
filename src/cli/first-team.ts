import { lookAround, type Surroundings } from './first-team/found.ts'
import { teamFile } from './first-team/team-file.ts'

/** A first orc.yaml for a folder, and what it was made from. */
export function proposeTeam(folder: string): { text: string; around: Surroundings } {
  const around = lookAround(folder)
  return { text: teamFile(around), around }
}

export { isOnPath } from './first-team/found.ts'
