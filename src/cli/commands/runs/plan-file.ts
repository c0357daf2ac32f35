import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { AppError } from '../../../base/errors.ts'
import { readPlan } from '../../../runs/plan/read-plan.ts'
import type { Plan, PlanTeam } from '../../../runs/plan.ts'
import { formatProblems } from '../../../yaml/problem.ts'
import { isTeamOfNobody } from '../../connection/plan-team.ts'
import type { TeamLocation } from '../../connection/team-location.ts'

export interface PlanFile {
  /** As it was named. */
  file: string
  text: string
  /** What its paths are relative to. */
  folder: string
  /** What it is called, unless it says so itself. */
  name: string
  plan: Plan
  /** Inputs that are not there yet. Something may still make them, so that this is no mistake. */
  missing: string[]
}

/** Reads and checks plan.yaml. Mistakes are told with their places before anything starts. */
export async function readPlanFile(file: string, location: TeamLocation): Promise<PlanFile> {
  const path = resolve(file)
  const bytes = readFileSync(path)
  const folder = dirname(path)
  const name = basename(path).replace(/\.ya?ml$/i, '')
  const team = { ...(await teamAt(location)), ...(await programsIn(bytes)) }
  const read = readPlan(bytes, { name, team })
  if (!read.ok) {
    throw new AppError(
      'CONFIG_INVALID',
      `The plan has mistakes\n\n${formatProblems(read.problems, file)}\n`,
      {
        hint: 'Nothing was started. docs/runs.md has every key of a plan.',
        data: { problems: read.problems },
      },
    )
  }
  const inputs = read.plan.agents.flatMap((agent) => agent.inputs.map((input) => `${input.path}`))
  const missing = [...new Set(inputs)].filter((input) => !existsSync(resolve(folder, input)))
  return { file, text: bytes.toString(), folder, name, plan: read.plan, missing }
}

/** All runtimes are loaded for it, so only where there is a program. */
async function programsIn(plan: Buffer): Promise<Pick<PlanTeam, 'checkProgram'>> {
  if (!plan.includes('program')) return {}
  const { checkProgram } = await import('../../../main.ts')
  return {
    checkProgram: ({ program, runtime, with: settings }) => checkProgram(runtime, { program, settings }),
  }
}

/** Who and which models there are, where orc.yaml can be read. Its own mistakes are for the service to tell. */
async function teamAt(location: TeamLocation): Promise<PlanTeam | undefined> {
  const { configFile } = location
  // Known before its file is made, so that a mistake is told here and by the name of the plan's file.
  if (isTeamOfNobody(location)) return { agents: [], models: [] }
  if (configFile === undefined || !existsSync(configFile)) return undefined
  const { readConfig } = await import('../../../config/config.ts')
  const loaded = readConfig(configFile)
  if (!loaded.ok) return undefined
  const { agents, models } = loaded.config
  return { agents: agents.map(({ name }) => name), models: Object.keys(models) }
}
