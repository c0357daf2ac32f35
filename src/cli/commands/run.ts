import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { newIdempotencyKey } from '../../client/idempotency-key.ts'
import { EXIT_CODE } from '../../runs/outcome.ts'
import { exitCode } from '../exit-code.ts'
import { usage } from '../faults.ts'
import { canRedraw, screenSize } from '../live.ts'
import { complain, paint, plainLine, print, printJson } from '../output.ts'
import type { Place } from '../place.ts'
import { type PlanFile, readPlanFile } from '../plan-file.ts'
import { optionFor, placeForPlan } from '../plan-place.ts'
import { showPlan } from '../plan-text.ts'
import type { RunShown } from '../run-state.ts'
import { placeLines, runSummary, runTitle, troubleLines } from '../run-text.ts'
import { endServiceOfRun, type ServiceForRun, serviceForRun } from '../service-for-run.ts'
import { isUnreachable, reachRuns } from '../stored-runs.ts'
import type { Invocation, Verb } from '../verb.ts'
import { watchRun } from '../watch-run.ts'

export const verb: Verb = {
  name: 'run',
  group: 'Plans',
  summary: 'carry out a plan.yaml: a graph of agents that hand files to each other; watch until it ends',
  details:
    'Mistakes are told with their places before anything starts. A service is started if none runs, and ends with the\n' +
    'run. Ctrl-C leaves the run going and ends with 130; --resume comes back to it, or takes up one that has ended: who\n' +
    'completed from the same inputs is not run again. In a pipe it is a line for each thing that happens, with --json an\n' +
    'event. A plan that is called like a verb below: orc run ./cancel',
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
    const invocation = { ...typed, place: placeForPlan(typed.place, folder) }
    const plan = words[0] === undefined ? undefined : await readPlanFile(words[0], invocation.place)
    for (const input of plan?.missing ?? []) {
      complain(`${paint('yellow', 'warning:', 'err')} the input ${plainLine(input)} is not there`)
    }
    if (flag('dry-run')) return showPlan(plan!, { json: typed.json, mermaid: flag('mermaid') })
    const leaving = new AbortController()
    const leave = () => leaving.abort()
    process.on('SIGINT', leave)
    process.on('SIGTERM', leave)
    const service = await serviceForRun(invocation)
    const id = await begin(service, plan, invocation).catch(async (error) => {
      await endServiceOfRun(service, invocation.place)
      throw error
    })
    if (flag('detach')) return detached(invocation, id)
    return await follow(invocation, service, id, leaving.signal)
  },
}

function check({ words, flag, option }: Invocation): void {
  const resumed = option('resume')
  if (words.length === 0 && resumed === undefined)
    throw usage('PLAN is missing', 'Usage: orc run PLAN [options]')
  if (flag('dry-run') && words.length === 0) throw usage('--dry-run needs a PLAN', 'orc run PLAN --dry-run')
  if (flag('dry-run') && (resumed !== undefined || flag('detach'))) {
    throw usage('--dry-run starts nothing', 'Leave --resume and --detach away.')
  }
  if (flag('mermaid') && !flag('dry-run')) throw usage('--mermaid goes with --dry-run', 'Add --dry-run.')
  if (flag('fresh') && resumed === undefined) throw usage('--fresh goes with --resume', 'A new run is fresh.')
}

function concurrencyOf({ option }: Invocation): { concurrency?: number } {
  const text = option('concurrency')
  if (text === undefined) return {}
  if (/^[1-9]\d{0,3}$/.test(text)) return { concurrency: Number(text) }
  throw usage(`--concurrency: "${text}" is not a number of agents`, 'From 1 to 9999.')
}

async function begin(
  service: ServiceForRun,
  plan: PlanFile | undefined,
  invocation: Invocation,
): Promise<string> {
  const id = invocation.option('resume')
  if (!invocation.json) await noteHalt(service)
  if (id === undefined) return await start(service, plan!, invocation)
  await resume(service, id, plan, invocation)
  return id
}

async function noteHalt({ client }: ServiceForRun): Promise<void> {
  const { halted } = await client.health()
  if (halted) complain(paint('yellow', 'Everything is stopped; `orc go` lets it go on.', 'err'))
}

/** Under one key, so that a connection that breaks does not start it twice. */
async function start({ client }: ServiceForRun, plan: PlanFile, invocation: Invocation) {
  const { text, folder, file, name } = plan
  const body = { plan: text, folder, file, name, ...concurrencyOf(invocation) }
  const { run_id } = await client.startRun(body, { idempotencyKey: newIdempotencyKey() })
  return run_id
}

async function resume(
  { client }: ServiceForRun,
  id: string,
  plan: PlanFile | undefined,
  invocation: Invocation,
) {
  const { flag, json } = invocation
  const { resumed, round } = await client.resumeRun(id, {
    ...(plan === undefined ? {} : { plan: plan.text, folder: plan.folder, file: plan.file }),
    ...concurrencyOf(invocation),
    ...(flag('fresh') ? { fresh: true } : {}),
  })
  if (json) return
  const isIgnored = !resumed && plan !== undefined
  complain(
    resumed
      ? `${id} is taken up again, round ${round}.`
      : `${id} has not ended and goes on.${isIgnored ? ' The plan is as it was.' : ''}`,
  )
}

function comeBack(place: Invocation['place'], id: string): string {
  return `orc run --resume ${id}${optionFor(place)}`
}

function detached({ place, json }: Invocation, id: string): number {
  if (json) printJson({ run_id: id })
  else {
    print(id)
    complain(paint('dim', `It runs in the background. Watch it: ${comeBack(place, id)}`, 'err'))
  }
  return exitCode('ok')
}

async function follow(
  { place, json }: Invocation,
  service: ServiceForRun,
  id: string,
  signal: AbortSignal,
): Promise<number> {
  try {
    const footer = `Ctrl-C leaves it running; ${comeBack(place, id)} comes back.`
    const watched = watchRun({ place, id, json, footer, signal })
    const outcome = await watched.then(
      (end) => end.outcome,
      (error) => outcomeInStore(place, id, error),
    )
    const run = await untilReported(place, id).catch((error: unknown) => {
      // How it ended is known, also where nobody is left to tell more of it.
      if (!isUnreachable(error)) throw error
    })
    if (!json && run !== undefined) showEnd(run)
    await endServiceOfRun(service, place)
    return EXIT_CODE[outcome]
  } catch (error) {
    if (!signal.aborted) throw error
    complain(`${id} goes on without you. Come back with: ${comeBack(place, id)}`)
    if (service.ours !== undefined)
      complain(`Its service ends with it; orc down${optionFor(place)} stops both.`)
    return exitCode('interrupted')
  }
}

/** A service that ends gathers what it has begun first. */
const ENDING_MS = 10_000

/** Not by the line from before: the service may have come back at another address, or ended with another's run. */
function lookAt(place: Place, id: string): Promise<{ run: RunShown; isServed: boolean }> {
  return reachRuns<{ run: RunShown; isServed: boolean }>(
    place,
    async (client) => ({ run: await client.run(id), isServed: true }),
    async (stored) => ({ run: await stored.show(id), isServed: false }),
    ENDING_MS,
  )
}

/** Of two runs at once, the one that started the service ends it when both are over: the other may not have heard. */
async function outcomeInStore(place: Place, id: string, error: unknown): Promise<keyof typeof EXIT_CODE> {
  if (!isUnreachable(error)) throw error
  const seen = await lookAt(place, id).catch(() => undefined)
  if (seen === undefined || seen.run.state === 'running') throw error
  return seen.run.state
}

const REPORT_MS = 10_000
const LOOK_AGAIN_MS = 25

/** The outputs are gathered and the report is written after the end; a service that ends with the run must be let. */
async function untilReported(place: Place, id: string): Promise<RunShown> {
  const deadline = Date.now() + REPORT_MS
  for (;;) {
    const { run, isServed } = await lookAt(place, id)
    // Without a service nobody goes on with it.
    const isReported = run.report !== undefined || run.report_fault !== undefined
    if (isReported || !isServed || Date.now() > deadline) return run
    await wait(LOOK_AGAIN_MS)
  }
}

function showEnd(run: RunShown): void {
  const there = (name: string) => (existsSync(join(run.place, name)) ? join(run.place, name) : undefined)
  const outputs = there('_outputs')
  // One of an earlier round may lie there.
  const reports =
    run.report === undefined ? [] : ['report.md', 'report.html'].flatMap((name) => there(name) ?? [])
  const places = placeLines(run, { ...(outputs === undefined ? {} : { outputs }), reports })
  // On a terminal each agent stands above already, unless there are too many.
  const isShown = canRedraw() && run.nodes.length < screenSize().height - 2
  const summary = isShown ? [runTitle(run), ...troubleLines(run)].join('\n') : runSummary(run)
  print(`\n${summary}\n${places}`)
}
