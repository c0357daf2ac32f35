/** How everything that an attempt starts is told from all other processes, by this service and by the next one. */
import { hash } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { type ProcessFacts, readProcesses } from '../runtimes/process-table.ts'

export interface RunMarks {
  /** `what`: `attempt 3` or `fix 1`; nothing: how all marks of the agent begin. */
  of(run: string, node: string, what: string): string
  /** How all marks of a run begin. */
  ofRun(run: string): string
  /** The processes of this service's runs, by their marks. Without /proc there are no marks to see. */
  find(): Promise<Map<string, ProcessFacts[]>>
}

/** Two services on one machine know their own by the state folder. */
export function createRunMarks(stateFolder: string): RunMarks {
  const prefix = `run-${hash('sha256', spelt(stateFolder)).slice(0, 12)}/`
  return {
    of: (run, node, what) => `${prefix}${run}/${node}/${what.replace(' ', '/')}`,
    ofRun: (run) => `${prefix}${run}/`,
    async find() {
      const found = new Map<string, ProcessFacts[]>()
      for (const one of await readProcesses()) {
        // A service that an agent started bears its mark itself.
        if (one.isZombie || one.pid === process.pid || !one.mark?.startsWith(prefix)) continue
        const same = found.get(one.mark)
        if (same === undefined) found.set(one.mark, [one])
        else same.push(one)
      }
      return found
    },
  }
}

/** However it is named: a link may lead to it. */
function spelt(folder: string): string {
  try {
    return realpathSync(folder)
  } catch {
    return folder
  }
}
