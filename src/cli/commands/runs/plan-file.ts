import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { AppError } from '../../../base/errors.ts'
import { readPlan } from '../../../runs/plan/read-plan.ts'
import type { Plan, PlanTeam } from '../../../runs/plan.ts'
import { formatProblems } from '../../../yaml/problem.ts'
import { isTeamOfNobody } from '../../connection/plan-team.ts'
import type { TeamLocation } from '../../connection/team-location.ts'

export interface PlanFile {
  /** As typed. */
  file: string
  text: string
  /** The paths of the plan are relative to this folder. */
  folder: string
  /** Name for a plan that has none itself. */
  name: string
  plan: Plan
  /** Inputs that do not exist yet. Not a mistake, because they may still be made. */
  missing: string[]
}

/** Reads and checks plan.yaml, so that a plan with mistakes starts no service. */
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

/** Loads all runtimes, so it does that only if the plan may contain a program. */
async function programsIn(plan: Buffer): Promise<Pick<PlanTeam, 'checkProgram'>> {
  if (!plan.includes('program')) return {}
  const { checkProgram } = await import('../../../main.ts')
  return {
    checkProgram: ({ program, runtime, with: settings }) => checkProgram(runtime, { program, settings }),
  }
}

/** Agents and models of orc.yaml, if it can be read. The service reports mistakes in it. */
async function teamAt(location: TeamLocation): Promise<PlanTeam | undefined> {
  const { configFile } = location
  // The file may not exist yet, but such a team has neither agents nor models.
  if (isTeamOfNobody(location)) return { agents: [], models: [] }
  if (configFile === undefined || !existsSync(configFile)) return undefined
  const { readConfig } = await import('../../../config/config.ts')
  const loaded = readConfig(configFile)
  if (!loaded.ok) return undefined
  const { agents, models } = loaded.config
  return { agents: agents.map(({ name }) => name), models: Object.keys(models) }
}
