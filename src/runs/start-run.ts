import { existsSync, statSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { AppError, reasonOf } from '../base/errors.ts'
import { type CommandAnswer, type CommandCall, receiptOf } from '../commands/commands.ts'
import type { Team } from '../commands/team.ts'
import type { Receipt } from '../protocol/receipt.ts'
import type { Runtime } from '../runtimes/runtime.ts'
import type { Store } from '../store/store.ts'
import { formatProblems } from '../yaml/problem.ts'
import { resumeRun as resumeCommand, startRun } from './api.ts'
import { resumeRun } from './core/reduce.ts'
import type { Driver } from './driver.ts'
import { missingInputs, readPlan } from './plan/read-plan.ts'
import type { Plan } from './plan.ts'
import { createRun, isRunOpen, type Run } from './run.ts'
import { claimRunFolder, releaseRunFolder } from './run-folder.ts'
import {
  insertRun,
  type NodeRecord,
  type RunFacts,
  readNodes,
  readRunHead,
  replaceRun,
  type SeenRun,
} from './store.ts'

export interface RunOrder {
  /** The text of plan.yaml. */
  readonly plan: string
  readonly folder: string
  /** Name of the file, for messages about mistakes in it. */
  readonly file?: string | undefined
  readonly name?: string | undefined
  readonly concurrency?: number | undefined
}

interface RunStarterOptions extends PlanContext {
  store: Store
  now(): number
  drivers: Map<string, Driver>
  drive(facts: RunFacts, run: Run, records: Map<string, NodeRecord>): Driver
  /** Throws for an unknown id. */
  mustFind(id: string): Promise<SeenRun & { records?: Map<string, NodeRecord> }>
  /** Stops driving a run that could not be stored. */
  abandon(driver: Driver): void
}

/** Starts and resumes runs: stores them, then drives them. */
export function createRunStarter(options: RunStarterOptions) {
  const { store, now, drivers, drive, abandon, mustFind } = options

  async function start(order: RunOrder, { speaker, commit }: CommandCall): CommandAnswer {
    const { folder } = order
    const by = speaker.person!
    const plan = readOrderedPlan(order.plan, folder, order, options)
    /** Folders by run id, because a transaction may be retried. */
    const claimed = new Map<string, string>()
    let started: { facts: RunFacts; run: Run } | undefined
    const answer = await commit(async ({ tx }) => {
      const id = `run_${await tx.nextKey('run')}`
      const runFolder = claimed.get(id) ?? claimFolder(folder, id)
      claimed.set(id, runFolder)
      const facts: RunFacts = { id, folder, runFolder, by }
      const run = createRun({ id, plan, now: now() })
      insertRun(tx, store.daemon, { ...facts, plan, head: run.head }, run.nodes.values())
      tx.audit({
        type: 'run.ordered',
        class: 'internal',
        actor: by,
        text: `${id}: ${by} starts ${plan.name} (${plan.agents.length} agents) in ${folder}`,
        data: { run_id: id, name: plan.name, folder },
      })
      tx.afterCommit(() => {
        started = { facts, run }
      })
      return receiptOf(startRun, `${id} started`, { run_id: id, ...missing(plan, folder) })
    }).finally(() => {
      for (const runFolder of claimed.values())
        if (runFolder !== started?.facts.runFolder) releaseRunFolder(runFolder)
    })
    if (started !== undefined) {
      const driver = drive(started.facts, started.run, new Map())
      driver.tell({ type: 'begun' })
      await driver.settled()
    }
    return answer
  }

  async function resume(
    id: string,
    order: ResumeOrder,
    { speaker, commit }: CommandCall,
  ): Promise<Receipt | AppError> {
    const by = speaker.person!
    const seen = await mustFind(id)
    const { run, folder: before } = seen
    const { round: meant = run.head.round + 1 } = order
    const hint = `See its state: orc run show ${id}`
    if (isRunOpen(run.head) || meant <= run.head.round) return rejoin(seen, order)
    if (meant > run.head.round + 1) {
      const what = `${id} is in round ${run.head.round}; only round ${run.head.round + 1} can be started`
      throw new AppError('CONFLICT', what, { hint })
    }
    const folder = order.folder ?? before
    const { concurrency = run.graph.plan.concurrency } = order
    const plan =
      order.plan === undefined
        ? { ...run.graph.plan, concurrency }
        : readOrderedPlan(order.plan, folder, { ...order, name: run.graph.plan.name }, options)
    const resumed = resumeRun(run, { plan, now: now() })
    if (!resumed.ok) throw new AppError('CONFLICT', resumed.error.message, { hint })
    const next = resumed.value
    if (order.fresh === true) {
      for (const node of next.nodes.values()) next.nodes.set(node.name, { ...node, previousResult: null })
    }
    const records =
      seen.records ?? new Map((await readNodes(store, id)).map(({ node, record }) => [node.name, record]))
    // Nothing is awaited between this check and `drive`, so the second of two concurrent calls finds the driver.
    const begun = drivers.get(id)
    if (begun !== undefined) return rejoin(begun, order)
    const driver = drive({ id, folder, runFolder: seen.runFolder, by: seen.by }, next, records)
    let isStored = false
    const answer = await commit(async ({ tx }) => {
      // Another call may have started and ended this round since the run was read.
      if ((await readRunHead(tx, id))?.round !== run.head.round) {
        return new AppError('CONFLICT', `${id} was just resumed by someone else`, { hint })
      }
      await replaceRun(tx, { id, folder, plan, head: next.head }, next.nodes)
      const { round } = next.head
      tx.audit({
        type: 'run.resumed',
        class: 'internal',
        actor: by,
        text: `${id}: ${by} resumes it, round ${round}`,
        data: { run_id: id, round },
      })
      tx.afterCommit(() => {
        isStored = true
      })
      return receiptOf(resumeCommand, `${id} resumed`, {
        ...{ run_id: id, round, resumed: true },
        ...missing(plan, folder),
      })
    }).catch((error: unknown) => {
      abandon(driver)
      throw error
    })
    if (!isStored) {
      abandon(driver)
      return answer
    }
    driver.tell({ type: 'begun' })
    await driver.settled()
    return answer
  }

  /** Refuses options that can no longer apply, instead of ignoring them. */
  function rejoin(seen: SeenRun, order: ResumeOrder) {
    const { id, folder, run } = seen
    const { plan } = run.graph
    const asked =
      order.plan === undefined
        ? undefined
        : readOrderedPlan(order.plan, order.folder ?? folder, { ...order, name: plan.name }, options)
    const refusal = cannotChange(seen, order, asked)
    if (refusal !== undefined) throw refusal
    const details = { run_id: id, round: run.head.round, resumed: false }
    return receiptOf(resumeCommand, `${id} has not ended`, details)
  }

  return { start, resume }
}

function missing(plan: Plan, folder: string): { missing_inputs?: string[] } {
  const paths = missingInputs(plan, folder)
  return paths.length === 0 ? {} : { missing_inputs: paths }
}

function claimFolder(folder: string, id: string): string {
  try {
    return claimRunFolder(folder, id)
  } catch (error) {
    throw new AppError('CONFLICT', `Cannot create a folder for the run in ${folder}: ${reasonOf(error)}`, {
      hint: 'Runs are stored in runs/ next to the plan; make that folder writable for the service.',
      cause: error,
    })
  }
}

export interface ResumeOrder {
  readonly plan?: string | undefined
  readonly folder?: string | undefined
  readonly file?: string | undefined
  readonly concurrency?: number | undefined
  readonly fresh?: boolean | undefined
  /** The requested round. If it has already begun, no other one is started. */
  readonly round?: number | undefined
}

/** Returns why an existing round cannot change as requested; undefined: nothing would change. `asked`: the requested plan. */
function cannotChange(
  { id, folder, run }: SeenRun,
  order: ResumeOrder,
  asked: Plan | undefined,
): AppError | undefined {
  const { plan } = run.graph
  // The stored plan holds the concurrency of the earlier request, not that of its file.
  const { concurrency = plan.concurrency } = order
  const changes = [
    ...(asked === undefined || isSamePlan(asked, plan) ? [] : ['another plan']),
    ...((order.folder ?? folder) === folder ? [] : [`another folder than ${folder}`]),
    ...(concurrency === plan.concurrency ? [] : [`another concurrency than ${plan.concurrency}`]),
    ...(order.fresh === true ? ['a fresh start'] : []),
  ]
  if (changes.length === 0) return undefined
  const what = changes.join(' and ')
  return isRunOpen(run.head)
    ? new AppError('CONFLICT', `${id} is still running and cannot be changed (requested: ${what})`, {
        hint: `Cancel it with orc run cancel ${id}, then repeat this command. orc run --resume ${id} without changes reattaches.`,
      })
    : new AppError('CONFLICT', `${id} ended before it could be changed (requested: ${what})`, {
        hint: 'Repeat the command to resume it with these changes.',
      })
}

/** Compares plans as they are stored, without the concurrency. */
function isSamePlan(one: Plan, other: Plan): boolean {
  const stored = (plan: Plan): unknown => JSON.parse(JSON.stringify({ ...plan, concurrency: 0 }))
  return isDeepStrictEqual(stored(one), stored(other))
}

interface PlanContext {
  team(): Team
  /** Each runtime checks the settings of the programs that a plan starts in it. */
  runtimes: readonly Runtime[]
}

/** Reads a plan and checks it against this service. Throws all mistakes with their positions. */
function readOrderedPlan(
  text: string,
  folder: string,
  order: Pick<RunOrder, 'name' | 'file' | 'concurrency'>,
  { team, runtimes }: PlanContext,
): Plan {
  checkFolder(folder)
  const { config } = team()
  const read = readPlan(text, {
    ...(order.name === undefined ? {} : { name: order.name }),
    team: {
      agents: config.agents.map(({ name }) => name),
      models: Object.keys(config.models),
      checkProgram: ({ program, runtime, with: settings }) =>
        runtimes.find(({ name }) => name === runtime)?.check({ program, settings }) ?? [],
    },
  })
  if (!read.ok) {
    throw new AppError('PLAN_INVALID', formatProblems(read.error, order.file ?? 'the plan'), {
      hint: read.error[0]!.hint,
    })
  }
  const plan = read.value
  const { concurrency = plan.concurrency } = order
  return { ...plan, concurrency }
}

function checkFolder(folder: string) {
  const isFolder = isAbsolute(folder) && existsSync(folder) && statSync(folder).isDirectory()
  if (isFolder) return
  throw new AppError('INVALID_REQUEST', `${folder.slice(0, 200)} is not a folder`, {
    hint: "Pass the absolute path of the plan's folder on the machine that runs the service.",
  })
}
