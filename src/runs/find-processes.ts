import { createRunMarks } from './mark.ts'

/**
 * What of a run still lives, by agent, for those who look without its service: a command outlives one that was killed.
 * Where there is no /proc, nothing can be seen of it.
 */
export async function findRunProcesses(stateFolder: string, run: string): Promise<Map<string, number[]>> {
  const found = new Map<string, number[]>()
  for (const [mark, processes] of await createRunMarks(stateFolder).find()) {
    const [, ofRun, agent] = mark.split('/')
    if (ofRun !== run || agent === undefined) continue
    found.set(agent, [...(found.get(agent) ?? []), ...processes.map(({ pid }) => pid)])
  }
  return found
}
