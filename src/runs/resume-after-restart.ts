/**
 * Resumes the open runs after a crash or a restart of the service. Nothing but the store is needed: the effects that are still
 * to be performed follow from the stored runs. It takes two steps:
 * 1. `open` loads the open runs, before the agents of the team start: programs of runs are members of the team.
 * 2. `begin` continues them, once the service can be reached: workers that survived are found again by their marks, all
 *    other pending effects are performed again.
 */
import type { Log } from '../base/log.ts'
import type { ProcessFacts } from '../runtimes/processes.ts'
import type { Store } from '../store/store.ts'
import { orderOf } from './attempts.ts'
import { pendingEffects } from './core/events-and-effects.ts'
import type { Driver } from './driver.ts'
import type { RunEffects } from './effects.ts'
import { endUnwanted, type RunMarks } from './process-marks.ts'
import { decisionEvent, findAsked } from './requests.ts'
import type { Run } from './run.ts'
import type { RunMessages } from './run-messages.ts'
import { type NodeRecord, openRunIds, type RunFacts, seeStoredRun } from './store.ts'
import type { TemporaryAgents } from './workers/temporary-agents.ts'

interface ResumeOptions {
  store: Store
  log: Log
  drivers: ReadonlyMap<string, Driver>
  drive(facts: RunFacts, run: Run, records: Map<string, NodeRecord>): Driver
  temporaryAgents: Pick<TemporaryAgents, 'restore'>
  marks: RunMarks
  mail: Pick<RunMessages, 'follow'>
  effects: Pick<RunEffects, 'perform'>
  isHalted(): boolean
}

export function createResumeAfterRestart(options: ResumeOptions) {
  const { store, log, drivers, drive, temporaryAgents, marks, mail, effects, isHalted } = options
  let leftovers: ReadonlyMap<string, readonly ProcessFacts[]> = new Map()
  let hasBegun = false

  async function open(): Promise<void> {
    for (const id of await openRunIds(store, store.daemon)) {
      const stored = await seeStoredRun(store, id)
      if (stored === undefined) continue
      const { folder, runFolder, by, run, records } = stored
      const driver = drive({ id, folder, runFolder, by }, run, records)
      for (const { name, attempt, alive } of run.nodes.values()) {
        const order = orderOf(driver, name, attempt)
        if (alive && order.runner.kind === 'program') temporaryAgents.restore(order)
      }
    }
  }

  async function begin(): Promise<void> {
    leftovers = await marks.find()
    await endUnwanted(leftovers.keys(), drivers.values(), marks, log)
    hasBegun = true
    for (const driver of drivers.values()) {
      mail.follow(driver)
      const { head } = driver.run
      // Take the stored effects before `restarted` adds new ones. Their events come after it.
      const pending = isHalted() ? [] : pendingEffects(driver.run)
      if (head.outcome === null) driver.tell({ type: head.begunAt === null ? 'begun' : 'restarted' })
      for (const effect of pending) effects.perform(driver, effect, false)
      driver.onTimer()
      await applyStoredAnswers(driver)
    }
  }

  /** Applies answers that were stored before the service was killed, but never reached the run. */
  async function applyStoredAnswers(driver: Driver) {
    for (const { name, state, asks } of driver.run.nodes.values()) {
      if (state !== 'asking') continue
      const row = await findAsked(store, { run: driver.id, node: name, ask: asks })
      if (row?.state !== 'answered') continue
      driver.tell(decisionEvent(row, row.comment ?? '', row.decided_by ?? ''))
    }
  }

  return {
    open,
    begin,
    hasBegun: () => hasBegun,
    /** Processes that an earlier service left running, by mark. */
    leftovers: () => leftovers,
  }
}
