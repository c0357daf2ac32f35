import { didYouMean } from '../base/suggestion.ts'
import type { Report } from '../yaml/problem.ts'
import type { ConfigInput } from './schema.ts'

export interface RunsConfig {
  /** A name from `models`: the model that proposes plans. */
  readonly planner: string | undefined
}

export function resolveRuns(
  { planner }: NonNullable<ConfigInput['runs']>,
  models: Readonly<Record<string, unknown>>,
  report: Report,
): RunsConfig {
  if (planner === undefined || planner === false || planner === 'off') return { planner: undefined }
  if (!Object.hasOwn(models, planner)) {
    const otherwise = 'Use a name from "models", or off.'
    report(
      ['runs', 'planner'],
      `There is no model "${planner}"`,
      didYouMean(planner, Object.keys(models), otherwise),
    )
  }
  return { planner }
}
