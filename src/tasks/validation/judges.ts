import { AppError } from '../../base/errors.ts'
import type { Team } from '../../commands/team.ts'
import type { Judge } from '../task.ts'

/** Who is meant by a name in a delegation: a model of orc.yaml, or an agent whatever its case. */
export function findJudge({ config, resolve }: Team, said: string): Judge | AppError {
  const agent = resolve(said)
  const isModel = Object.hasOwn(config.models, said)
  if (agent !== undefined && isModel) {
    return new AppError('INVALID_COMMAND', `"${agent}" is both a model and an agent`, {
      hint: 'Rename one of them in orc.yaml.',
    })
  }
  if (agent !== undefined) return { kind: 'agent', name: agent }
  if (isModel) return { kind: 'model', name: said }
  return new AppError('NOT_FOUND', `There is no model or agent "${said.slice(0, 100)}" to judge it`, {
    hint: 'Name one of "models" or "agents" in orc.yaml, or leave "judge" out.',
  })
}

export function isSameJudge(one: Judge, other: Judge | undefined): boolean {
  return one.kind === other?.kind && one.name === other.name
}
