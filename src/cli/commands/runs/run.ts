import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { newIdempotencyKey } from '../../../client/idempotency-key.ts'
import { locationForPlan, optionFor } from '../../connection/plan-team.ts'
import { isUnreachable } from '../../connection/stored-runs.ts'
import { usage } from '../../errors.ts'
import { exitCode } from '../../exit-code.ts'
import { complain, paint, plainLine, print, printJson } from '../../output/print.ts'
import { canRedraw, screenSize } from '../../output/redraw.ts'
import type { Invocation, Verb } from '../../verb.ts'
import { type PlanFile, readPlanFile } from './plan-file.ts'
import { showPlan } from './plan-preview.ts'
import { untilReported } from './read-run.ts'
import { type RunBefore, readBeforeResume, resumeRun } from './resume.ts'
import { RUN_EXIT_CODE, type RunShown } from './run-state.ts'
import { pathLines, runSummary, runTitle, troubleLines } from './run-text.ts'
import {
  endServiceOfRun,
  type KeptService,
  keepServiceForRun,
  type ServiceForRun,
  serviceForRun,
} from './service-for-run.ts'
import { watchRun } from './watch.ts'

export const verb: Verb = {
  name: 'run',
  summary: 'run a plan.yaml and watch it until it ends',
  details:
    'Checks the whole plan before anything starts. If no service is running, it starts one that ends with the run.\n' +
    'Ctrl-C exits with 130 and leaves the run going. --resume returns to it, or resumes one that has ended; agents that\n' +
    'completed with the same inputs do not run again. A run that is still going cannot be changed. In a pipe, it prints\n' +
    'one line per event; with --json, one JSON event per line. For a plan file named like a verb: orc run ./cancel',
  arguments: [{ name: 'PLAN', optional: true }],
  options: [
    { name: 'dry-run', summary: 'show the order and the graph without starting anything' },
    { name: 'mermaid', summary: 'with --dry-run: print the graph as a Mermaid flowchart' },
    { name: 'resume', value: 'RUN', summary: 'resume a run; with PLAN, use the plan as it is now' },
    { name: 'fresh', summary: 'with --resume: run all agents again, even completed ones' },
    { name: 'detach', short: 'd', summary: 'start the run and return' },
    { name: 'concurrency', value: 'N', summary: "agents in parallel, instead of the plan's number" },
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
    const plan = words[0] === undefined ? undefined : await readPlanFile(words[0], invocation.location)
    for (const input of plan?.missing ?? []) {
      complain(`${paint('yellow', 'warning:', 'err')} input ${plainLine(input)} does not exist`)
    }
    if (flag('dry-run')) {
      return showPlan(plan!, { json: typed.json, mermaid: flag('mermaid'), ...concurrencyOf(typed) })
    }
    const leaving = new AbortController()
    const leave = () => leaving.abort()
    process.on('SIGINT', leave)
    process.on('SIGTERM', leave)
    const resumed = invocation.option('resume')
    const before = resumed === undefined ? undefined : await readBeforeResume(invocation.location, resumed)
    let id: string | undefined
    const again = () => (id === undefined ? 'The same command' : resumeCommand(invocation.location, id))
    const service = keepServiceForRun(await serviceForRun(invocation), invocation, again)
    id = await begin(service, plan, invocation, before).catch(async (error) => {
      await endServiceOfRun(service.current(), invocation.location)
      throw error
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

/** Retries if the service is killed meanwhile. It may have stored the run already; the same key prevents a second one. */
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
  service: ServiceForRun,
  plan: PlanFile | undefined,
  invocation: Invocation,
  before: RunBefore | undefined,
  key: string,
): Promise<string> {
  if (!invocation.json) await noteHalt(service)
  if (before === undefined) return await start(service, plan!, invocation, key)
  const said = await resumeRun(service.client, invocation.location, before, {
    ...(plan === undefined ? {} : { plan: plan.text, folder: plan.folder, file: plan.file }),
    ...concurrencyOf(invocation),
    ...(invocation.flag('fresh') ? { fresh: true } : {}),
  })
  if (!invocation.json) complain(said)
  return before.id
}

async function noteHalt({ client }: ServiceForRun): Promise<void> {
  const { halted } = await client.health()
  if (halted) complain(paint('yellow', 'Orchub is halted; resume it with `orc go`.', 'err'))
}

async function start({ client }: ServiceForRun, plan: PlanFile, invocation: Invocation, key: string) {
  const { text, folder, file, name } = plan
  const body = { plan: text, folder, file, name, ...concurrencyOf(invocation) }
  const { run_id } = await client.startRun(body, { idempotencyKey: key })
  return run_id
}

function resumeCommand(location: Invocation['location'], id: string): string {
  return `orc run --resume ${id}${optionFor(location)}`
}

function detached({ location, json }: Invocation, id: string): number {
  if (json) printJson({ run_id: id })
  else {
    print(id)
    complain(
      paint('dim', `The run continues in the background. Watch it: ${resumeCommand(location, id)}`, 'err'),
    )
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
    const run = await untilReported(location, id).catch((error: unknown) => {
      // The outcome is known even if no service is left to give the details.
      if (!isUnreachable(error)) throw error
    })
    if (!json && run !== undefined) showEnd(run)
    await endServiceOfRun(service.current(), location)
    return RUN_EXIT_CODE[outcome]
  } catch (error) {
    if (!signal.aborted) throw error
    complain(`${id} keeps running. Return to it with: ${resumeCommand(location, id)}`)
    if (service.current().ours !== undefined)
      complain(`Its service ends with the run; orc down${optionFor(location)} stops both.`)
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
