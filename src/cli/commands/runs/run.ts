import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { BodyOf } from '../../../api/contract.ts'
import { AppError } from '../../../base/errors.ts'
import type { Client } from '../../../client/client.ts'
import { newIdempotencyKey } from '../../../client/transport.ts'
import { ignoreUnreachable, isUnreachable, noteHalt, reachRuns } from '../../connection/client.ts'
import type { TeamLocation } from '../../connection/connection.ts'
import {
  endServiceOfRun,
  type KeptService,
  keepServiceForRun,
  locationForPlan,
  optionFor,
  type ServiceForRun,
  serviceForRun,
} from '../../connection/start-service.ts'
import { exitCode, usage } from '../../errors.ts'
import { canRedraw, screenSize } from '../../output/layout.ts'
import { complain, print, printJson, remark } from '../../output/print.ts'
import { abortOnSignal } from '../../signals.ts'
import type { Invocation, Verb } from '../../verb.ts'
import {
  checkPlan,
  needsCheckHere,
  openPlan,
  type PlanFile,
  planBody,
  planInvalid,
  showPlan,
  warnOfMissing,
} from './plan-file.ts'
import { pathLines, RUN_EXIT_CODE, type RunShown, runSummary, runTitle, troubleLines } from './run-text.ts'
import { watchRun } from './watch.ts'

export const verb: Verb = {
  name: 'run',
  summary: 'run a plan.yaml and watch it until it ends',
  details:
    'Checks the whole plan before anything starts. If no service is running, starts one that ends with the run.\n' +
    'Ctrl-C exits with 130; the run continues. --resume RUN returns to it, or resumes a run that has ended: agents that\n' +
    'completed with the same inputs do not run again. A run that has not ended cannot be changed. In a pipe, prints one\n' +
    'line per event, and with --json one JSON object per event. If the plan file is named like a verb: orc run ./cancel',
  arguments: [{ name: 'PLAN', optional: true }],
  options: [
    { name: 'dry-run', summary: 'show the order and the graph without starting anything' },
    { name: 'mermaid', summary: 'with --dry-run: print the graph as a Mermaid flowchart' },
    { name: 'resume', value: 'RUN', summary: 'resume a run; with PLAN, use the current plan file' },
    { name: 'fresh', summary: 'with --resume: run all agents again, even completed ones' },
    { name: 'detach', short: 'd', summary: 'start the run and return' },
    {
      name: 'concurrency',
      value: 'N',
      summary: "number of agents that run in parallel; overrides the plan's",
    },
  ],
  examples: [
    'orc run plan.yaml',
    'orc run plan.yaml --dry-run',
    'orc run plan.yaml --dry-run --mermaid > graph.mmd',
    'orc run --resume run_1',
    'orc run plan.yaml --resume run_1 --json',
  ],
  async run(typed) {
    const { words, flag } = typed
    check(typed)
    const folder = words[0] === undefined ? process.cwd() : dirname(resolve(words[0]))
    const invocation = { ...typed, location: locationForPlan(typed.location, folder) }
    const { location } = invocation
    const plan = words[0] === undefined ? undefined : openPlan(words[0])
    if (plan !== undefined && flag('dry-run')) {
      const how = { json: typed.json, mermaid: flag('mermaid'), ...concurrencyOf(typed) }
      return await showPlan(await checkPlan(plan, location), how)
    }
    const isChecked = plan !== undefined && needsCheckHere(plan, location)
    if (isChecked) await checkPlan(plan, location)
    // A running service checks the plan itself.
    const beforeStart = async () => {
      if (plan !== undefined && !isChecked) await checkPlan(plan, location)
    }
    const leaving = abortOnSignal()
    const resumed = invocation.option('resume')
    const before = resumed === undefined ? undefined : await readBeforeResume(location, resumed)
    let id: string | undefined
    const again = () => (id === undefined ? 'The same command' : resumeCommand(location, id))
    const service = keepServiceForRun(await serviceForRun(invocation, beforeStart), invocation, again)
    id = await begin(service, plan, invocation, before).catch(async (error) => {
      await endServiceOfRun(service.current(), location)
      throw error instanceof AppError && error.code === 'PLAN_INVALID' ? planInvalid(error.message) : error
    })
    if (flag('detach')) return detached(invocation, id)
    return await follow(invocation, service, id, leaving.signal)
  },
}

function check(invocation: Invocation): void {
  const { words, flag, option } = invocation
  concurrencyOf(invocation)
  const resumed = option('resume')
  if (words.length === 0 && resumed === undefined)
    throw usage('PLAN is missing', 'Usage: orc run PLAN [options]. orc help run lists the verbs of run.')
  if (flag('dry-run') && words.length === 0)
    throw usage('--dry-run needs a PLAN', 'Usage: orc run PLAN --dry-run')
  if (flag('dry-run') && (resumed !== undefined || flag('detach'))) {
    throw usage('--dry-run starts nothing', 'Drop --resume and --detach.')
  }
  if (flag('mermaid') && !flag('dry-run')) throw usage('--mermaid needs --dry-run', 'Add --dry-run.')
  if (flag('fresh') && resumed === undefined)
    throw usage('--fresh needs --resume', 'Drop --fresh: a new run starts fresh.')
}

function concurrencyOf({ option }: Invocation): { concurrency?: number } {
  const text = option('concurrency')
  if (text === undefined) return {}
  const concurrency = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (concurrency >= 1 && concurrency <= 10_000) return { concurrency }
  throw usage(`--concurrency: "${text}" is not a valid number of agents`, 'Use a number from 1 to 10000.')
}

/** Retries if the service is killed. It may have stored the run already; the same key prevents a second run. */
async function begin(
  service: KeptService,
  plan: PlanFile | undefined,
  invocation: Invocation,
  before: RunBefore | undefined,
): Promise<string> {
  const key = newIdempotencyKey()
  for (;;) {
    try {
      return await order(service.current(), plan, invocation, before, key)
    } catch (error) {
      if (!isUnreachable(error) || !(await service.startAgain())) throw error
    }
  }
}

async function order(
  { client }: ServiceForRun,
  plan: PlanFile | undefined,
  invocation: Invocation,
  before: RunBefore | undefined,
  key: string,
): Promise<string> {
  if (!invocation.json) await noteHalt(client)
  if (before === undefined) {
    const body = { ...planBody(plan!), name: plan!.name, ...concurrencyOf(invocation) }
    const { run_id, missing_inputs } = await client.startRun(body, { idempotencyKey: key })
    warnOfMissing(missing_inputs)
    return run_id
  }
  const message = await resumeRun(client, invocation.location, before, {
    ...(plan === undefined ? {} : planBody(plan)),
    ...concurrencyOf(invocation),
    ...(invocation.flag('fresh') ? { fresh: true } : {}),
  })
  if (!invocation.json) complain(message)
  return before.id
}

function resumeCommand(location: Invocation['location'], id: string): string {
  return `orc run --resume ${id}${optionFor(location)}`
}

function detached({ location, json }: Invocation, id: string): number {
  if (json) printJson({ run_id: id })
  else {
    print(id)
    remark(`The run continues in the background. Watch it: ${resumeCommand(location, id)}`)
  }
  return exitCode('ok')
}

async function follow(
  invocation: Invocation,
  service: KeptService,
  id: string,
  signal: AbortSignal,
): Promise<number> {
  const { location, json } = invocation
  try {
    const footer = `Ctrl-C leaves it running; return with ${resumeCommand(location, id)}`
    const { startAgain } = service
    const { outcome } = await watchRun({ location, id, json, footer, signal, startAgain })
    // The outcome is known, even if the service with the details is gone.
    const run = await untilReported(location, id).catch(ignoreUnreachable)
    if (!json && run !== undefined) showEnd(run)
    await endServiceOfRun(service.current(), location)
    return RUN_EXIT_CODE[outcome]
  } catch (error) {
    if (!signal.aborted) throw error
    complain(`${id} keeps running. Return to it with: ${resumeCommand(location, id)}`)
    if (service.current().ours !== undefined)
      complain(`The service ends with the run. To stop both: orc down${optionFor(location)}`)
    return exitCode('interrupted')
  }
}

function showEnd(run: RunShown): void {
  const there = (name: string) => (existsSync(join(run.place, name)) ? join(run.place, name) : undefined)
  const outputs = there('_outputs')
  // A file from an earlier round may still exist.
  const reports =
    run.report === undefined ? [] : ['report.md', 'report.html'].flatMap((name) => there(name) ?? [])
  const paths = pathLines(run, { ...(outputs === undefined ? {} : { outputs }), reports })
  // On a terminal the live view above already shows each agent, unless there are too many.
  const isShown = canRedraw() && run.nodes.length < screenSize().height - 2
  const summary = isShown ? [runTitle(run), ...troubleLines(run)].join('\n') : runSummary(run)
  print(`\n${summary}\n${paths}`)
}

/** The state of a run at the moment the user asked to resume it. */
interface RunBefore {
  id: string
  at: number
  /** Undefined if only a service can read it. */
  run: RunShown | undefined
}

/** Reads the run before a service starts, because the service continues open runs and may end them at once. */
async function readBeforeResume(location: TeamLocation, id: string): Promise<RunBefore> {
  const at = Date.now()
  const { configFile } = location
  if (!process.env.ORC_URL && configFile !== undefined && !existsSync(configFile)) {
    throw new AppError('NOT_FOUND', `There is no run ${id} here`, {
      hint: 'Run this in the folder of its plan, or name the team with --config FILE.',
    })
  }
  const seen = await readRun(location, id).catch(ignoreUnreachable)
  return { id, at, run: seen?.run }
}

/** Reattaches to an open run or resumes one that has ended; returns a message that says which. */
async function resumeRun(
  client: Client,
  location: TeamLocation,
  { id, at, run }: RunBefore,
  order: BodyOf<'resumeRun'>,
): Promise<string> {
  const seen = run ?? (await client.run(id))
  const { resumed, round, missing_inputs } = await client.resumeRun(id, {
    ...order,
    round: await meantRound(location, seen, at),
  })
  if (order.plan !== undefined) warnOfMissing(missing_inputs)
  if (resumed) return `Resumed ${id}, round ${round}.`
  if (round > seen.round) return `Someone else has already resumed ${id}, round ${round}.`
  return isOpen(seen) ? `${id} is still running.` : `${id} has just ended.`
}

/**
 * The round that was open when the user typed the command, otherwise the next one. If the run ended before it could be
 * read, its end time decides.
 */
async function meantRound(location: TeamLocation, seen: RunShown, typedAt: number): Promise<number> {
  if (seen.cancelled === undefined) {
    return isOpen(seen) || hasEndedSince(seen, typedAt) ? seen.round : seen.round + 1
  }
  // To resume a cancelled run means to start the next round, once this one has ended.
  return isOpen(await untilReported(location, seen.id)) ? seen.round : seen.round + 1
}

/** Not for a service at ORC_URL, whose clock may differ. */
function hasEndedSince({ ended_at }: RunShown, at: number): boolean {
  return !process.env.ORC_URL && ended_at !== undefined && Date.parse(ended_at) >= at
}

/** How long to wait for a stopping service, which first collects the outputs of its runs. */
const ENDING_MS = 10_000

/** Opens a new connection each time: the service may have restarted at another address, or ended. */
function readRun(location: TeamLocation, id: string): Promise<{ run: RunShown; isServed: boolean }> {
  return reachRuns<{ run: RunShown; isServed: boolean }>(
    location,
    async (client) => ({ run: await client.run(id), isServed: true }),
    async (stored) => ({ run: await stored.show(id), isServed: false }),
    ENDING_MS,
  )
}

/** True until the run has ended and its report is written. */
function isOpen({ state, report, report_fault }: RunShown): boolean {
  return state === 'running' || (report === undefined && report_fault === undefined)
}

const REPORT_MS = 10_000
const LOOK_AGAIN_MS = 25

/** Waits for the outputs and the report, which the service writes after the run has ended. */
async function untilReported(location: TeamLocation, id: string): Promise<RunShown> {
  const deadline = Date.now() + REPORT_MS
  for (;;) {
    const { run, isServed } = await readRun(location, id)
    // Without a service the run doesn't change any more.
    if (!isOpen(run) || !isServed || Date.now() > deadline) return run
    await wait(LOOK_AGAIN_MS)
  }
}
