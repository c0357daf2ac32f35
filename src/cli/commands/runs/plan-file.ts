import { isUtf8 } from 'node:buffer'
import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { AppError } from '../../../base/errors.ts'
import { graphOf, type PlanAgent, type PlanTeam, stepsOf } from '../../../runs/plan.ts'
import { formatProblems } from '../../../yaml/problem.ts'
import type { TeamLocation } from '../../connection/connection.ts'
import { hasNoAgents } from '../../connection/start-service.ts'
import { usage } from '../../errors.ts'
import { counted } from '../../output/layout.ts'
import { paint, plainLine, print, printJson, printRaw, warn } from '../../output/print.ts'

export interface PlanFile {
  /** The path as typed. */
  file: string
  bytes: Buffer
  /** Base of the plan's relative paths. */
  folder: string
  /** Default name of the run, from the file name. */
  name: string
}

export function openPlan(file: string): PlanFile {
  const path = resolve(file)
  const name = basename(path).replace(/\.ya?ml$/i, '')
  return { file, bytes: readFileSync(path), folder: dirname(path), name }
}

/** The plan as sent to the service, which reads and checks it. */
export function planBody({ file, bytes, folder }: PlanFile) {
  return { plan: bytes.toString(), folder, file }
}

/** True if the service cannot see a mistake: invalid UTF-8, or an agent of the generated team without agents. */
export function needsCheckHere({ bytes }: PlanFile, location: TeamLocation): boolean {
  return !isUtf8(bytes) || hasNoAgents(location)
}

/** Reads and checks a plan in this process: for a preview, and before a service is started for it. */
export async function checkPlan({ file, bytes, folder, name }: PlanFile, location: TeamLocation) {
  const team = { ...(await teamAt(location)), ...(await programsIn(bytes)) }
  const { missingInputs, readPlan } = await import('../../../runs/plan/read-plan.ts')
  const read = readPlan(bytes, { name, team })
  if (!read.ok) throw planInvalid(formatProblems(read.error, file))
  return { plan: read.value, missing: missingInputs(read.value, folder) }
}

export function warnOfMissing(inputs: readonly string[] = []): void {
  for (const input of inputs) warn(`input ${plainLine(input)} does not exist`)
}

/** The same error for mistakes that this process or the service finds. */
export function planInvalid(problems: string): AppError {
  return new AppError('PLAN_INVALID', `The plan has mistakes\n\n${problems.trimEnd()}\n`, {
    hint: 'Nothing was started. docs/runs.md explains every key of a plan.',
  })
}

/** Loads all runtimes, so only for plans that use a program. */
async function programsIn(plan: Buffer): Promise<Pick<PlanTeam, 'checkProgram'>> {
  if (!plan.includes('program')) return {}
  const { checkProgram } = await import('../../../main.ts')
  return {
    checkProgram: ({ program, runtime, with: settings }) => checkProgram(runtime, { program, settings }),
  }
}

/** Agents and models of the team, if orc.yaml is valid. The service reports mistakes in orc.yaml itself. */
async function teamAt(location: TeamLocation): Promise<PlanTeam | undefined> {
  const { configFile } = location
  // This team's orc.yaml doesn't exist yet, but its content is known.
  if (hasNoAgents(location)) return { agents: [], models: [] }
  if (configFile === undefined || !existsSync(configFile)) return undefined
  const { readConfig } = await import('../../../config/config.ts')
  const loaded = readConfig(configFile)
  if (!loaded.ok) return undefined
  const { agents, models } = loaded.value.config
  return { agents: agents.map(({ name }) => name), models: Object.keys(models) }
}

/** Prints the order and the graph of a plan. */
export async function showPlan(
  { plan, missing }: Awaited<ReturnType<typeof checkPlan>>,
  how: { json: boolean; mermaid: boolean; concurrency?: number },
): Promise<number> {
  const { drawGraph, drawSteps, mermaidOf } = await import('../../../runs/plan/draw-graph.ts')
  warnOfMissing(missing)
  const graph = graphOf(plan)
  const { name, goal, agents } = plan
  const { concurrency = plan.concurrency } = how
  if (how.json) {
    if (how.mermaid) throw usage("--json can't be combined with --mermaid", 'Drop one of them.')
    printJson({ name, goal, concurrency, steps: stepsOf(graph), agents: agents.map(facts), missing })
    return 0
  }
  if (how.mermaid) {
    printRaw(mermaidOf(graph))
    return 0
  }
  const width = Math.max(40, process.stdout.columns || 100)
  const byName = new Map(agents.map((agent) => [agent.name, agent]))
  print(
    [
      `${paint('bold', plainLine(name))}: ${counted(agents.length, 'agent')}, at most ${concurrency} at once`,
      ...(goal === '' ? [] : [plainLine(goal)]),
      '',
      drawSteps(graph, { width }),
      '',
      drawGraph(graph, { width, note: (agent) => whoWorks(byName.get(agent)!) }),
    ].join('\n'),
  )
  return 0
}

function facts({ name, runner, dependsOn, outputs, retries, timeoutMs }: PlanAgent) {
  const after = dependsOn.map(({ agent, onFailure }) => ({ agent, on_failure: onFailure }))
  return { name, runner: runner.kind, depends_on: after, outputs, retries, timeout_ms: timeoutMs }
}

function whoWorks({ runner }: PlanAgent): string {
  switch (runner.kind) {
    case 'command':
      return ''
    case 'agent':
      return `[${runner.agent}]`
    case 'program':
      return `[${runner.program}]`
    case 'model':
      return `[model ${runner.model}]`
    case 'files':
      return '[outside agent]'
  }
}
