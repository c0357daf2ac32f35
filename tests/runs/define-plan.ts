import { readPlan } from '../../src/runs/plan/read-plan.ts'
import type { PlanInput } from '../../src/runs/plan/validate-plan.ts'
import type { Plan } from '../../src/runs/plan.ts'

/** The plan that a file with this content holds. JSON is YAML. Throws if it has mistakes. */
export function definePlan(input: PlanInput): Plan {
  const read = readPlan(JSON.stringify(input))
  if (read.ok) return read.value
  throw new Error(read.error.map(({ path, message }) => `${path}: ${message}`).join('\n'))
}
