/**
 * A fix is in one of these states:
 * - preparing: its workspace is made and its inbox filled. Leads to working, or to ended if that fails or the run no
 *   longer needs the fix. A fix that an earlier service began is found again instead.
 * - working: a worker runs. `state` and `reason` hold its latest report, whether by status.json or by a command. Leads to
 *   stopping when it reports an end, when `stop` is called, or after the timeout that the plan gives the fixer.
 * - frozen: a halt suspends the worker and the timeout, of which `timeLeft` is left. Leads back to working.
 * - stopping: the worker is being stopped. `stopped` holds the reason unless the fixer itself reported the end.
 * - ended: the worker has ended, and its report is written. A success leads to collecting the corrected inputs.
 * - left: the service stops. Nothing is reported, because the next service finds the fixer or starts it again.
 */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { collectOutbox, deliverReport } from '../workspaces/outbox.ts'
import { watchStatus } from '../workspaces/status.ts'
import {
  collectCorrections,
  createWorkspace,
  ERROR_REPORT,
  nameProblems,
  prepareInbox,
  removeFolder,
} from '../workspaces/workspaces.ts'
import { isPending, type Keyed, type OutsideEffect, type RunEvent } from './core/events-and-effects.ts'
import type { Driver } from './driver.ts'
import { DEFAULTS } from './plan/validate-plan.ts'
import type { Fixer, PlanAgent, PlanInstructions } from './plan.ts'
import { outputsFrom, type PrepareOptions } from './prepare-node.ts'
import { correctionsOf, exitOf, FIXED, fixOf, logOf, makeFixes, workspaceOf } from './run-folder.ts'
import type { FollowWork, Worker, WorkerKinds, WorkOrder } from './workers/worker.ts'

type Fix = Keyed<Extract<OutsideEffect, { type: 'fix' }>>

interface FixerRunnerOptions {
  clock: Clock
  workers: WorkerKinds
  withheldFrom: PrepareOptions['withheldFrom']
}

/** Why a fix failed; undefined: the fixer reported completion. */
type FixFailure = string | undefined

/** Fix and retry (S4.12): a fixer gets the error report and the inputs, and corrects them. */
export function createFixerRunner({ clock, workers, withheldFrom }: FixerRunnerOptions) {
  const live = new Map<string, Pick<Worker, 'stop' | 'freeze' | 'close'>>()
  let isFrozen = false

  async function fix(driver: Driver, effect: Fix, signal: AbortSignal): Promise<RunEvent> {
    const { node, fix: number } = effect
    const done = (fixed: boolean, why: string): RunEvent => {
      return { type: 'fixer_done', node, fix: number, fixed, why }
    }
    makeFixes(driver.runFolder)
    const fixer = fixerOf(driver, effect.fixer)
    const workspace = fixOf(driver.runFolder, node, number)
    const order = orderOf(driver, fixer, node, number)
    const kind = workers[order.runner.kind]
    const follow = existsSync(workspace) ? await kind.find(order) : undefined
    if (follow === undefined) {
      const made = await prepare(driver, fixer, effect, workspace, withheldFrom, signal)
      if (!made.ok) return done(false, nameProblems(made.error))
      // Cancelled while its inbox was filled.
      if (!isPending(driver.run, effect)) return done(false, 'it was stopped')
    }
    const failure = await work(order, signal, follow ?? ((port) => kind.start(order, port)))
    if (failure !== undefined) return done(false, failure)
    const isCorrected = driver.run.nodes.get(node)!.corrected
    const taken = await collectCorrections({
      ...{ runFolder: driver.runFolder, name: FIXED, agent: node },
      ...{ workspace, isCorrected, signal },
    })
    if (!taken.ok) return done(false, nameProblems(taken.error))
    driver.note(node, `its inputs were corrected: ${taken.value.slice(0, 10).join(', ')}`)
    return done(true, '')
  }

  function work(order: WorkOrder, signal: AbortSignal, begin: FollowWork): Promise<FixFailure> {
    return new Promise((done) => {
      let state: 'pending' | 'running' | 'completed' | 'failed' = 'pending'
      let reason = ''
      let stopped: string | undefined
      let worker: Worker | undefined
      let delivered: Promise<void> = Promise.resolve()
      const key = `${order.run}/${order.node}/${order.what}`
      const watch = watchStatus({
        workspace: order.workspace,
        onUpdate(update) {
          if (update.kind !== 'status') return
          state = update.status.state
          reason = update.status.error?.message ?? ''
          if (state === 'completed' || state === 'failed') worker?.stop(true)
        },
      })
      const stop = (why: string) => {
        stopped ??= why
        worker?.stop(false)
      }
      let timeLeft = order.timeoutMs
      let since = clock.now()
      const startClock = () => {
        since = clock.now()
        return clock.after(timeLeft, () => stop('the fixer timed out'))
      }
      let cancel = startClock()
      // The next service finds the fixer or starts it again, so report nothing.
      const aborted = () => {
        finish()
        done('the service ended')
      }
      signal.addEventListener('abort', aborted, { once: true })
      function finish() {
        cancel()
        signal.removeEventListener('abort', aborted)
        watch.close()
        live.delete(key)
      }
      worker = begin({
        started() {},
        active() {},
        metered() {},
        slow() {},
        delegated() {},
        reported(how, why) {
          state = how
          reason = why
          // Only outbox/inputs/ counts, so a failure to write the report is ignored.
          if (how === 'completed') delivered = deliverReport(order.workspace, why).catch(() => {})
          void delivered.then(() => worker?.stop(true))
        },
        ended({ code, why }) {
          watch.look()
          finish()
          if (signal.aborted) return
          const isDone = state === 'completed' || (state === 'pending' && code === 0)
          const otherwise = isDone
            ? undefined
            : reason || why || 'the fixer ended without reporting completion'
          void delivered.then(() => done(stopped ?? otherwise))
        },
      })
      const { freeze: hold, ...rest } = worker
      const freeze = (frozen: boolean) => {
        hold(frozen)
        // A halt also stops the deadline.
        cancel()
        if (frozen) timeLeft -= clock.now() - since
        else cancel = startClock()
      }
      live.set(key, { ...rest, freeze })
      if (isFrozen) freeze(true)
    })
  }

  return {
    fix,
    stop(driver: Driver, node: string, number: number): boolean {
      const worker = live.get(`${driver.id}/${node}/fix ${number}`)
      worker?.stop(false)
      return worker !== undefined
    },
    freeze(frozen: boolean) {
      if (isFrozen === frozen) return
      isFrozen = frozen
      for (const worker of live.values()) worker.freeze(frozen)
    },
    async close(how: 'leave' | 'end') {
      await Promise.all([...live.values()].map((worker) => worker.close(how)))
    },
  }
}

export type FixerRunner = ReturnType<typeof createFixerRunner>

function fixerOf({ run }: Driver, name: string): Fixer {
  const known = run.graph.plan.fixers.find((one) => one.name === name)
  if (known !== undefined) return known
  return {
    name,
    runner: { kind: 'agent', agent: name },
    instructions: NOTHING,
    timeoutMs: DEFAULTS.timeoutMs,
  }
}

const NOTHING: PlanInstructions = {
  objective: '',
  context: '',
  inputsProvided: [],
  requirements: [],
  successCriteria: [],
  constraints: [],
  outputExpectations: [],
}

function orderOf(driver: Driver, fixer: Fixer, node: string, number: number): WorkOrder {
  return {
    run: driver.id,
    node,
    what: `fix ${number}`,
    runner: fixer.runner,
    workspace: fixOf(driver.runFolder, node, number),
    objective: objectiveOf(fixer, node),
    timeoutMs: fixer.timeoutMs,
    logFile: logOf(driver.runFolder, `${node}.fix`, number),
    exitFile: exitOf(driver.runFolder, `${node}.fix`, number),
    task: undefined,
  }
}

function objectiveOf({ instructions }: Fixer, node: string): string {
  return instructions.objective || `Correct the inputs of ${node}, so that it can do its work.`
}

async function prepare(
  driver: Driver,
  fixer: Fixer,
  { node, before }: Fix,
  workspace: string,
  withheldFrom: FixerRunnerOptions['withheldFrom'],
  signal: AbortSignal,
) {
  const { run, runFolder, folder } = driver
  const agent: PlanAgent = run.graph.agents.get(node)!
  await removeFolder(workspace, signal)
  const objective = objectiveOf(fixer, node)
  const made = await createWorkspace({ path: workspace, name: fixer.name, template: 'generic', objective })
  if (!made.ok) return made
  const failed = await collectOutbox(workspaceOf(runFolder, node), { signal })
  // Checked by name, because a report that is too large to read can still be copied.
  const hasReport = failed.ok && failed.value.outputs.some(({ path }) => path === ERROR_REPORT)
  const sources = agent.dependsOn.filter(({ agent: from, outputs }) => {
    const { state, result } = run.nodes.get(from)!
    return state === 'completed' && result !== null && outputs.length > 0
  })
  const earlier = run.nodes.get(node)!.corrected ? correctionsOf(runFolder, node) : undefined
  const below = (to: string) => to.replace(/^inbox\/?/, 'inbox/inputs/')
  const { context, requirements, outputExpectations } = fixer.instructions
  return await prepareInbox({
    workspace,
    task: objective.split('\n')[0]!,
    instructions: {
      ...fixer.instructions,
      objective,
      context: [context, `${node} failed: ${before.why}`, `Its task: ${agent.instructions.objective}`]
        .filter((text) => text !== '')
        .join('\n\n'),
      requirements: [
        ...requirements,
        'inbox/inputs/ holds the content of its inbox. Put a corrected copy of each wrong file into outbox/inputs/, under the same path.',
      ],
      outputExpectations:
        outputExpectations.length > 0
          ? outputExpectations
          : ['Place the corrected files in `outbox/inputs/`'],
    },
    withheld: () => withheldFrom(driver),
    // Corrections of earlier fixes replace the originals.
    inputs: [
      ...(earlier === undefined ? [] : [{ ...earlier, to: 'inbox/corrected_before' }]),
      ...agent.inputs.map(({ path, to }) => ({ path: resolve(folder, path), to: below(to) })),
    ],
    dependencies: [
      ...sources.map((source) => outputsFrom(driver, { ...source, copyTo: below(source.copyTo) })),
      ...(hasReport
        ? [
            {
              workspace: workspaceOf(runFolder, node),
              agent: node,
              outputs: [`outbox/${ERROR_REPORT}`],
              copyTo: 'inbox',
            },
          ]
        : []),
    ],
    signal,
  })
}
