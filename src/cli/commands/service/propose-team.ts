import { lookAround, type Surroundings } from './detect-programs.ts'
import { teamFile } from './team-file.ts'

/** A first orc.yaml for a folder, and what it was made from. */
export function proposeTeam(folder: string): { text: string; around: Surroundings } {
  const around = lookAround(folder)
  return { text: teamFile(around), around }
}

export { isOnPath } from './detect-programs.ts'
