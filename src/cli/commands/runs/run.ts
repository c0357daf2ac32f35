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
import { type RunBefore, resumeRun, seenBefore } from './resume.ts'
import { RUN_EXIT_CODE, type RunShown } from './run-state.ts'
import { placeLines, runSummary, runTitle, troubleLines } from './run-text.ts'
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
    'Mistakes are told with their places before anything starts. A service is started if none runs, and ends with the\n' +
    'run. Ctrl-C leaves the run going and ends with 130; --resume comes back to it, or takes up one that has ended: who\n' +
    'completed from the same inputs is not run again. What would change one that goes on is refused. In a pipe it is a\n' +
    'line for each thing that happens, with --json an event. A plan file named like a verb of run: orc run ./cancel',
  arguments: [{ name: 'PLAN', optional: true }],
  options: [
    { name: 'dry-run', summary: 'show the order and the graph, and start nothing' },
    { name: 'mermaid', summary: 'with --dry-run: the graph as a Mermaid flowchart' },
    { name: 'resume', value: 'RUN', summary: 'go on with a run; with PLAN, by the plan as it is now' },
    { name: 'fresh', summary: 'with --resume: run everyone again, whatever they completed' },
    { name: 'detach', short: 'd', summary: 'start it and return' },
    { name: 'concurrency', value: 'N', summary: 'how many agents at once, instead of what the plan says' },
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
      complain(`${paint('yellow', 'warning:', 'err')} the input ${plainLine(input)} is not there`)
    }
    if (flag('dry-run')) {
      return showPlan(plan!, { json: typed.json, mermaid: flag('mermaid'), ...concurrencyOf(typed) })
    }
    const leaving = new AbortController()
    const leave = () => leaving.abort()
    process.on('SIGINT', leave)
    process.on('SIGTERM', leave)
    const resumed = invocation.option('resume')
    const before = resumed === undefined ? undefined : await seenBefore(invocation.location, resumed)
    let id: string | undefined
    const again = () => (id === undefined ? 'The same again' : comeBack(invocation.location, id))
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
    throw usage('PLAN is missing', 'Usage: orc run PLAN [options]; orc help run lists its verbs.')
  if (flag('dry-run') && words.length === 0) throw usage('--dry-run needs a PLAN', 'orc run PLAN --dry-run')
  if (flag('dry-run') && (resumed !== undefined || flag('detach'))) {
    throw usage('--dry-run starts nothing', 'Drop --resume and --detach.')
  }
  if (flag('mermaid') && !flag('dry-run')) throw usage('--mermaid goes with --dry-run', 'Add --dry-run.')
  if (flag('fresh') && resumed === undefined) throw usage('--fresh goes with --resume', 'A new run is fresh.')
}

function concurrencyOf({ option }: Invocation): { concurrency?: number } {
  const text = option('concurrency')
  if (text === undefined) return {}
  const concurrency = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (concurrency >= 1 && concurrency <= 10_000) return { concurrency }
  throw usage(`--concurrency: "${text}" is not a number of agents`, 'From 1 to 10000.')
}

/** Retries with the same key and round, because a service that was killed may have stored the run. */
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
  if (halted) complain(paint('yellow', 'Everything is halted; `orc go` resumes it.', 'err'))
}

async function start({ client }: ServiceForRun, plan: PlanFile, invocation: Invocation, key: string) {
  const { text, folder, file, name } = plan
  const body = { plan: text, folder, file, name, ...concurrencyOf(invocation) }
  const { run_id } = await client.startRun(body, { idempotencyKey: key })
  return run_id
}

function comeBack(location: Invocation['location'], id: string): string {
  return `orc run --resume ${id}${optionFor(location)}`
}

function detached({ location, json }: Invocation, id: string): number {
  if (json) printJson({ run_id: id })
  else {
    print(id)
    complain(paint('dim', `It runs in the background. Watch it: ${comeBack(location, id)}`, 'err'))
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
    const footer = `Ctrl-C leaves it running; ${comeBack(location, id)} comes back.`
    const { startAgain } = service
    const { outcome } = await watchRun({ location, id, json, footer, signal, startAgain })
    const run = await untilReported(location, id).catch((error: unknown) => {
      // The outcome is known even if no service is left to report details.
      if (!isUnreachable(error)) throw error
    })
    if (!json && run !== undefined) showEnd(run)
    await endServiceOfRun(service.current(), location)
    return RUN_EXIT_CODE[outcome]
  } catch (error) {
    if (!signal.aborted) throw error
    complain(`${id} keeps running without you. Come back with: ${comeBack(location, id)}`)
    if (service.current().ours !== undefined)
      complain(`Its service ends with it; orc down${optionFor(location)} stops both.`)
    return exitCode('interrupted')
  }
}

function showEnd(run: RunShown): void {
  const there = (name: string) => (existsSync(join(run.place, name)) ? join(run.place, name) : undefined)
  const outputs = there('_outputs')
  // A report of an earlier round may exist.
  const reports =
    run.report === undefined ? [] : ['report.md', 'report.html'].flatMap((name) => there(name) ?? [])
  const places = placeLines(run, { ...(outputs === undefined ? {} : { outputs }), reports })
  // The live view above already shows all agents, unless there are too many.
  const isShown = canRedraw() && run.nodes.length < screenSize().height - 2
  const summary = isShown ? [runTitle(run), ...troubleLines(run)].join('\n') : runSummary(run)
  print(`\n${summary}\n${places}`)
}
