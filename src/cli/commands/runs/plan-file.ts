import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { AppError } from '../../../base/errors.ts'
import { readPlan } from '../../../runs/plan/read-plan.ts'
import type { Plan, PlanTeam } from '../../../runs/plan.ts'
import { formatProblems } from '../../../yaml/problem.ts'
import { hasNoAgents } from '../../connection/plan-team.ts'
import type { TeamLocation } from '../../connection/team-location.ts'

export interface PlanFile {
  /** The path as typed. */
  file: string
  text: string
  /** Base of the plan's relative paths. */
  folder: string
  /** Default name of the run, from the file name. */
  name: string
  plan: Plan
  /** Inputs that don't exist yet. Not a mistake: something may still create them. */
  missing: string[]
}

/** Reads and checks plan.yaml; throws an error that lists the mistakes with their lines. */
export async function readPlanFile(file: string, location: TeamLocation): Promise<PlanFile> {
  const path = resolve(file)
  const bytes = readFileSync(path)
  const folder = dirname(path)
  const name = basename(path).replace(/\.ya?ml$/i, '')
  const team = { ...(await teamAt(location)), ...(await programsIn(bytes)) }
  const read = readPlan(bytes, { name, team })
  if (!read.ok) {
    throw new AppError('CONFIG_INVALID', `The plan has mistakes\n\n${formatProblems(read.error, file)}\n`, {
      hint: 'Nothing was started. docs/runs.md explains every key of a plan.',
      data: { problems: read.error },
    })
  }
  const inputs = read.value.agents.flatMap((agent) => agent.inputs.map((input) => `${input.path}`))
  const missing = [...new Set(inputs)].filter((input) => !existsSync(resolve(folder, input)))
  return { file, text: bytes.toString(), folder, name, plan: read.value, missing }
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
