import type { Log } from '../base/log.ts'
import { HAS_MARKS } from '../runtimes/process-table.ts'
import { endProcesses } from '../runtimes/processes.ts'
import type { Driver } from './driver.ts'
import type { RunMarks } from './mark.ts'

/** Whatever of a run left its group and its parents still bears its mark. */
export async function sweepRun(run: string, marks: RunMarks, log: Log): Promise<void> {
  try {
    for (const mark of (await marks.find()).keys()) {
      if (mark.startsWith(marks.ofRun(run))) await endProcesses({ mark })
    }
  } catch (error) {
    log.error({ err: error, run }, 'what a run left behind could not be ended')
  }
}

/**
 * What earlier attempts of an agent, their checks and fixers left running, in whatever group: it would work beside the next
 * attempt, in the same folder. Throws what cannot be ended.
 */
export async function endEarlier(run: string, node: string, attempt: number, marks: RunMarks): Promise<void> {
  if (!HAS_MARKS) return
  const own = marks.of(run, node, `attempt ${attempt}`)
  const ofNode = marks.of(run, node, '')
  const earlier = [...(await marks.find()).keys()].filter((mark) => mark !== own && mark.startsWith(ofNode))
  await Promise.all(earlier.map((mark) => endProcesses({ mark })))
}

/** Checks of an earlier service, and what ended runs left. */
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
      endProcesses({ mark }).catch((error: unknown) => log.error({ err: error, mark }, 'it cannot be ended')),
    ),
  )
}
