import type { Clock } from '../base/clock.ts'
import { reasonOf } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { Attempts } from './attempts.ts'
import type { Keyed, OutsideEffect, RunEvent } from './core/events-and-effects.ts'
import type { Driver } from './driver.ts'
import { type PrepareOptions, prepareNode } from './prepare-node.ts'
import type { RunMarks } from './process-marks.ts'
import type { FixerRunner } from './run-fixer.ts'
import type { OutputValidator } from './validate-outputs.ts'
import { createReportWriter } from './write-report.ts'

interface RunEffectsOptions {
  log: Log
  clock: Clock
  attempts: Attempts
  fixing: FixerRunner
  validate: OutputValidator
  now(): number
  marks: Pick<RunMarks, 'of'>
  withheldFrom: PrepareOptions['withheldFrom']
}

/**
 * Performs effects outside of the store, after the commit that ordered them. A crash loses none: unfinished effects follow
 * from the stored run, and the next start performs them again. Effects with the same key never run in parallel.
 */
export function createRunEffects(options: RunEffectsOptions) {
  const { log, attempts, fixing, validate, now, marks, withheldFrom } = options
  const underWay = new Map<string, Promise<void>>()
  const ending = new AbortController()
  const { signal } = ending
  const report = createReportWriter(options.clock)
  const preparing = { markOf: marks.of, withheldFrom }
  /** Reports being written, for `cancelReport`. */
  const reports = new Map<Driver, AbortController>()
  /** A halt aborts validations, and they run again after it. */
  let validating = new AbortController()
  let validatingSignal = AbortSignal.any([signal, validating.signal])

  /** `isNew`: ordered by this service, not by an earlier one. */
  function perform(driver: Driver, effect: Keyed<OutsideEffect>, isNew: boolean) {
    if (signal.aborted || underWay.has(effect.key)) return
    const broken = effect.type === 'validate' ? validatingSignal : signal
    const done = carryOut(driver, effect, isNew, broken)
      .catch((error: unknown) => {
        if (broken.aborted) return
        log.error({ err: error, run: driver.id, effect: effect.type }, 'performing an effect of a run failed')
        giveUp(driver, effect, error)
      })
      .finally(() => underWay.delete(effect.key))
    underWay.set(effect.key, done)
  }

  async function carryOut(
    driver: Driver,
    effect: Keyed<OutsideEffect>,
    isNew: boolean,
    broken: AbortSignal,
  ): Promise<void> {
    /** Aborted effects report nothing. */
    const tell: Driver['tell'] = (event, record) => {
      if (!broken.aborted) driver.tell(event, record)
    }
    switch (effect.type) {
      case 'prepare': {
        const { event, record } = await prepareNode(driver, effect, preparing, broken)
        return tell(event, record)
      }
      case 'start_attempt':
        return await attempts.start(driver, effect, isNew)
      case 'follow_attempt':
        return isNew ? undefined : await attempts.follow(driver, effect)
      case 'stop_attempt':
        return attempts.stop(driver, effect)
      case 'validate':
        return tell(await validate(driver, effect, broken))
      case 'fix':
        return tell(await fixing.fix(driver, effect, broken))
      case 'stop_fix': {
        const { node, fix } = effect
        if (fixing.stop(driver, node, fix)) return
        return driver.tell({ type: 'fixer_done', node, fix, fixed: false, why: 'it was stopped' })
      }
      case 'write_report':
        return tell(await writeReport(driver, effect.round, broken))
    }
  }

  async function writeReport(driver: Driver, round: number, broken: AbortSignal): Promise<RunEvent> {
    const cancelling = new AbortController()
    reports.set(driver, cancelling)
    try {
      const unconsolidated = await report(driver, now(), AbortSignal.any([broken, cancelling.signal]))
      const isWhole = Object.keys(unconsolidated).length === 0
      return { type: 'report_written', round, ...(isWhole ? {} : { unconsolidated }) }
    } finally {
      reports.delete(driver)
    }
  }

  /** Turns an error of Orchub itself into an event. Without it, the run would wait forever. */
  function giveUp(driver: Driver, effect: Keyed<OutsideEffect>, error: unknown) {
    const why = `internal error: ${reasonOf(error)}`
    switch (effect.type) {
      case 'prepare': {
        const { node, preparation } = effect
        return driver.tell({ type: 'copy_failed', node, preparation, why, recoverable: true })
      }
      case 'start_attempt':
      case 'follow_attempt':
      case 'stop_attempt': {
        const { node, attempt } = effect
        if (attempts.has(driver, node, attempt)) return
        return driver.tell({ type: 'exited', node, attempt, code: null, signal: null, lost: false, why })
      }
      case 'validate': {
        const { node, attempt } = effect
        const evidence = [{ step: 'schema' as const, outcome: 'unavailable' as const, text: why }]
        return driver.tell({
          ...{ type: 'validated', node, attempt, passed: false, evidence },
          ...{ outputs: [], outputsHash: '', summary: '' },
        })
      }
      case 'fix':
      case 'stop_fix':
        return driver.tell({ type: 'fixer_done', node: effect.node, fix: effect.fix, fixed: false, why })
      case 'write_report':
        return driver.tell({ type: 'report_failed', round: effect.round, why: reasonOf(error) })
    }
  }

  return {
    perform,
    /** Gives up a report that waits for disk space. Returns false if none waits. */
    cancelReport(driver: Driver, why: string): boolean {
      if (!driver.isWaitingForDisk) return false
      const cancelling = reports.get(driver)
      cancelling?.abort(new Error(why))
      return cancelling !== undefined
    },
    /** Aborts running checks and judges. */
    halt() {
      validating.abort()
    },
    /** Resolves when the aborted validations have ended. They can run again after that. */
    async afterHalt() {
      const left = [...underWay].filter(([key]) => key.includes('/validate/')).map(([, done]) => done)
      await Promise.all(left)
      validating = new AbortController()
      validatingSignal = AbortSignal.any([signal, validating.signal])
    },
    async close() {
      ending.abort()
      await Promise.all(underWay.values())
    },
  }
}

export type RunEffects = ReturnType<typeof createRunEffects>
