import { existsSync, statSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import { AppError } from '../base/errors.ts'
import type { Team } from '../commands/team.ts'
import { formatProblems } from '../config/config.ts'
import type { Runtime } from '../runtimes/runtime.ts'
import { readPlan } from './plan/read-plan.ts'
import type { Plan } from './plan.ts'

export interface PlanSurroundings {
  team(): Team
  /** They check the settings of the programs that a plan starts. */
  runtimes: readonly Runtime[]
}

/** The plan as this service can carry it out; throws all that is wrong with it, naming the places. */
export function readOrderedPlan(
  text: string,
  folder: string,
  order: { name?: string; file?: string; concurrency?: number },
  { team, runtimes }: PlanSurroundings,
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
    throw new AppError('PLAN_INVALID', formatProblems(read.problems, order.file ?? 'the plan'), {
      hint: read.problems[0]!.hint,
      data: { problems: read.problems },
    })
  }
  const { plan } = read
  const { concurrency = plan.concurrency } = order
  return { ...plan, concurrency }
}

function checkFolder(folder: string) {
  const isFolder = isAbsolute(folder) && existsSync(folder) && statSync(folder).isDirectory()
  if (isFolder) return
  throw new AppError('INVALID_REQUEST', `${folder.slice(0, 200)} is not a folder`, {
    hint: 'Give the whole path of a folder on the machine of the service: that of the plan.',
  })
}
