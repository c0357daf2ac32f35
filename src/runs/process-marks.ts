import { hash } from 'node:crypto'
import { realpathSync } from 'node:fs'
import type { Log } from '../base/log.ts'
import { endProcesses, HAS_MARKS, type ProcessFacts, readProcesses } from '../runtimes/processes.ts'
import type { Driver } from './driver.ts'

/** Marks in the environment of processes. This service and the next one find the processes of an attempt by them. */

export interface RunMarks {
  /** `what`: `attempt 3` or `fix 1`. Empty: the prefix of all marks of the agent. */
  of(run: string, node: string, what: string): string
  /** Prefix of all marks of a run. */
  ofRun(run: string): string
  /** Finds the processes of this service's runs by their marks. Without /proc it finds none. */
  find(): Promise<Map<string, ProcessFacts[]>>
}

/** Marks include a hash of the state folder, which distinguishes services on the same machine. */
export function createRunMarks(stateFolder: string): RunMarks {
  const prefix = `run-${hash('sha256', spelt(stateFolder)).slice(0, 12)}/`
  return {
    of: (run, node, what) => `${prefix}${run}/${node}/${what.replace(' ', '/')}`,
    ofRun: (run) => `${prefix}${run}/`,
    async find() {
      const found = new Map<string, ProcessFacts[]>()
      for (const one of await readProcesses()) {
        // If an agent started this service, this process has the agent's mark.
        if (one.isZombie || one.pid === process.pid || !one.mark?.startsWith(prefix)) continue
        const same = found.get(one.mark)
        if (same === undefined) found.set(one.mark, [one])
        else same.push(one)
      }
      return found
    },
  }
}

function spelt(folder: string): string {
  try {
    return realpathSync(folder)
  } catch {
    return folder
  }
}

/** Ends all processes of a run by their marks, even if they left its process groups. */
export async function sweepRun(run: string, marks: RunMarks, log: Log): Promise<void> {
  try {
    for (const mark of (await marks.find()).keys()) {
      if (mark.startsWith(marks.ofRun(run))) await endProcesses({ mark })
    }
  } catch (error) {
    log.error({ err: error, run }, 'ending the leftover processes of a run failed')
  }
}

/**
 * Ends processes that earlier attempts of an agent, their checks and fixers left running, because they would interfere with
 * the next attempt in the same folder. Throws if that fails.
 */
export async function endEarlier(run: string, node: string, attempt: number, marks: RunMarks): Promise<void> {
  if (!HAS_MARKS) return
  const own = marks.of(run, node, `attempt ${attempt}`)
  const ofNode = marks.of(run, node, '')
  const earlier = [...(await marks.find()).keys()].filter((mark) => mark !== own && mark.startsWith(ofNode))
  await Promise.all(earlier.map((mark) => endProcesses({ mark })))
}

/** Ends checks of an earlier service, and leftover processes of runs that have ended. */
export async function endUnwanted(
  found: Iterable<string>,
  drivers: Iterable<Driver>,
  marks: RunMarks,
  log: Log,
): Promise<void> {
  const wanted = new Set<string>()
  for (const { id, run } of drivers) {
    for (const { name, attempt, fixes, alive, fixerAlive } of run.nodes.values()) {
      if (alive) wanted.add(marks.of(id, name, `attempt ${attempt}`))
      if (fixerAlive) wanted.add(marks.of(id, name, `fix ${fixes}`))
    }
  }
  const unwanted = [...found].filter((mark) => !wanted.has(mark))
  await Promise.all(
    unwanted.map((mark) =>
      endProcesses({ mark }).catch((error: unknown) =>
        log.error({ err: error, mark }, 'ending leftover processes failed'),
      ),
    ),
  )
}

/**
 * Finds the live processes of a run by agent, without its service: a command survives a service that was killed.
 * Without /proc it finds none.
 */
export async function findRunProcesses(stateFolder: string, run: string): Promise<Map<string, number[]>> {
  const found = new Map<string, number[]>()
  for (const [mark, processes] of await createRunMarks(stateFolder).find()) {
    const [, ofRun, agent] = mark.split('/')
    if (ofRun !== run || agent === undefined) continue
    // The shell that leads the group only waits for the agent's command; see WRAPPER in workers/spawn-commands.ts.
    const own = processes.filter(
      ({ pid, group }) => pid !== group || !processes.some((one) => one.parent === pid),
    )
    found.set(agent, [...(found.get(agent) ?? []), ...own.map(({ pid }) => pid)])
  }
  return found
}
