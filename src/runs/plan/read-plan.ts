import { AppError } from '../../base/errors.ts'
import { describeBy } from '../../yaml/description.ts'
import { copyPlain } from '../../yaml/plain.ts'
import { formatProblems, type Locate, type Problem, reportInto } from '../../yaml/problem.ts'
import { checkShape } from '../../yaml/shape.ts'
import { decodeUtf8 } from '../../yaml/utf8.ts'
import { readYaml } from '../../yaml/yaml.ts'
import type { Plan } from '../plan.ts'
import { resolvePlan } from './resolve.ts'
import { type PlanInput, PlanSchema, planJsonSchema, SMALLEST } from './schema.ts'
import { type Team, validatePlan } from './validate.ts'

/** Enough for tens of thousands of agents. */
const MAX_BYTES = 8 * 1024 * 1024
const MAX_VALUES = 1_000_000

export interface PlanOptions {
  /** Where the plan itself has no name: that of its file. */
  readonly name?: string
  /** Who and which models there are in orc.yaml. Without it, these names are not checked. */
  readonly team?: Team
}

export type ReadPlan =
  | { readonly ok: true; readonly plan: Plan }
  | { readonly ok: false; readonly problems: readonly Problem[] }

const words = { ...describeBy(planJsonSchema, SMALLEST), wellMeant }

/** Reads plan.yaml from text, or from bytes that should be text. Never throws for what is in it. */
export function readPlan(source: string | Uint8Array, options: PlanOptions = {}): ReadPlan {
  if (source.length > MAX_BYTES)
    return refuse('The file is too large', `At most ${MAX_BYTES / 1024 ** 2} MiB.`)
  const decoded = decodeUtf8(source)
  if (!decoded.ok) return { ok: false, problems: [decoded.problem] }
  const { value, locate, problems } = readYaml(decoded.text, MAX_VALUES)
  if (problems.length > 0) return { ok: false, problems: sorted(problems) }
  if (value === null) return refuse('The file is empty', `A minimal example: ${SMALLEST}`)
  return finish(value, locate, options)
}

/** The same, for plans that come from a program or a model. */
export function checkPlan(input: unknown, options: PlanOptions = {}): ReadPlan {
  const problems: Problem[] = []
  const locate: Locate = () => ({ line: 0, column: 0 })
  const value = copyPlain(input, reportInto(problems, locate))
  return problems.length > 0 ? { ok: false, problems } : finish(value, locate, options)
}

/** The same, for programs that embed Orchub. Throws CONFIG_INVALID with all the problems. */
export function definePlan(input: PlanInput, options: PlanOptions = {}): Plan {
  const result = checkPlan(input, options)
  if (result.ok) return result.plan
  throw new AppError('CONFIG_INVALID', formatProblems(result.problems, 'plan.yaml'), {
    hint: result.problems[0]!.hint,
    data: { problems: result.problems },
  })
}

function finish(value: unknown, locate: Locate, { name = 'plan', team = {} }: PlanOptions): ReadPlan {
  const problems: Problem[] = []
  const report = reportInto(problems, locate)
  const input = checkShape(PlanSchema, words, value, report)
  if (input === undefined) return { ok: false, problems: sorted(problems) }
  const plan = resolvePlan(input, name, report)
  validatePlan(plan, team, report)
  return problems.length > 0 ? { ok: false, problems: sorted(problems) } : { ok: true, plan }
}

/** Words that other tools use for these things. */
const ELSEWHERE: Record<string, string> = {
  needs: 'depends_on',
  dependencies: 'depends_on',
  wait_for: 'depends_on',
  steps: 'agents',
  tasks: 'agents',
  jobs: 'agents',
  nodes: 'agents',
  run: 'command',
  cmd: 'command',
  script: 'command',
  prompt: 'instructions',
  task: 'instructions',
  deliverables: 'outputs',
  retry: 'retries',
  parallel: 'concurrency',
  max_parallel: 'concurrency',
}

function wellMeant(key: string, parent: readonly (string | number)[]): string | undefined {
  const here = Object.hasOwn(ELSEWHERE, key) ? ELSEWHERE[key] : undefined
  return here !== undefined && words.knownKeys(parent).includes(here)
    ? `Here it is called "${here}".`
    : undefined
}

function refuse(message: string, hint: string): ReadPlan {
  return { ok: false, problems: [{ line: 1, column: 1, path: '', message, hint }] }
}

function sorted(problems: readonly Problem[]): Problem[] {
  return problems.toSorted((a, b) => a.line - b.line || a.column - b.column)
}
