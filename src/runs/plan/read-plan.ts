import { stringify } from 'yaml'
import { z } from 'zod'
import { AppError } from '../../base/errors.ts'
import { formatProblems, type Problem, reportInto, sortProblems } from '../../yaml/problem.ts'
import { checkShape, describeBy } from '../../yaml/shape.ts'
import { type ReadSource, readObject, readYaml } from '../../yaml/yaml.ts'
import { EDGE_POLICIES, type Plan, type PlanAgent, type PlanTeam } from '../plan.ts'
import { resolvePlan } from './resolve.ts'
import { type PlanAgentInput, type PlanInput, PlanSchema, planJsonSchema, SMALLEST } from './schema.ts'
import { validatePlan } from './validate.ts'

/** Enough for tens of thousands of agents. */
const MAX_BYTES = 8 * 1024 * 1024
const MAX_VALUES = 1_000_000

interface PlanOptions {
  /** Name of a plan that has none itself: that of its file. */
  readonly name?: string
  /** Agents and models of orc.yaml. Without it, their names are not checked. */
  readonly team?: PlanTeam
}

type ReadPlan =
  | { readonly ok: true; readonly plan: Plan }
  | { readonly ok: false; readonly problems: readonly Problem[] }

const words = { ...describeBy(planJsonSchema, SMALLEST), wellMeant }

/** Reads plan.yaml from text or bytes. Returns mistakes as values. */
export function readPlan(source: string | Uint8Array, options: PlanOptions = {}): ReadPlan {
  return finish(readYaml(source, { maxBytes: MAX_BYTES, maxNodes: MAX_VALUES, smallest: SMALLEST }), options)
}

/** Checks a plan that comes from a program or a model. */
export function checkPlan(input: unknown, options: PlanOptions = {}): ReadPlan {
  return finish(readObject(input), options)
}

/** Checks a plan for programs that embed Orchub. Throws CONFIG_INVALID with all mistakes. */
export function definePlan(input: PlanInput, options: PlanOptions = {}): Plan {
  const result = checkPlan(input, options)
  if (result.ok) return result.plan
  throw new AppError('CONFIG_INVALID', formatProblems(result.problems, 'plan.yaml'), {
    hint: result.problems[0]!.hint,
    data: { problems: result.problems },
  })
}

function finish(read: ReadSource, { name = 'plan', team = {} }: PlanOptions): ReadPlan {
  if (!read.ok) return { ok: false, problems: read.error }
  const { value, locate } = read.value
  const problems: Problem[] = []
  const report = reportInto(problems, locate)
  const input = checkShape(PlanSchema, words, value, report)
  if (input === undefined) return { ok: false, problems: sortProblems(problems) }
  const plan = resolvePlan(input, name, report)
  validatePlan(plan, team, report)
  return problems.length > 0 ? { ok: false, problems: sortProblems(problems) } : { ok: true, plan }
}

/** Keys that other tools use. */
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

// inbox/dependencies.json (S4.13): written from a plan, and read back into a plan.

const MANIFEST_BYTES = 1024 * 1024

/** Unknown keys are ignored, because others may have written the file. */
const ManifestSchema = z.looseObject({
  depends_on: z
    .array(
      z.looseObject({
        agent: z.string().min(1).max(200),
        outputs: z.array(z.string().min(1).max(500)).max(1000).optional(),
        copy_to: z.string().min(1).max(500).optional(),
        on_failure: z.enum(EDGE_POLICIES).optional(),
      }),
    )
    .max(10_000)
    .optional(),
  wait_for: z.array(z.string().min(1).max(200)).max(10_000).optional(),
})
type DependencyManifest = z.output<typeof ManifestSchema>

export function manifestOf({ dependsOn }: PlanAgent): DependencyManifest {
  return {
    depends_on: dependsOn
      // Agents without outputs are in wait_for, which cannot hold a policy.
      .filter(({ outputs, onFailure }) => outputs.length > 0 || onFailure !== 'fail')
      .map(({ agent, outputs, copyTo, onFailure }) => ({
        agent,
        outputs: [...outputs],
        ...(outputs.length === 0 ? {} : { copy_to: `${copyTo}/` }),
        ...(onFailure === 'fail' ? {} : { on_failure: onFailure }),
      })),
    wait_for: [...new Set(dependsOn.map(({ agent }) => agent))],
  }
}

export function manifestText(agent: PlanAgent): string {
  return `${JSON.stringify(manifestOf(agent), null, 2)}\n`
}

export interface FoundWorkspace {
  readonly name: string
  /** Text of inbox/dependencies.json; null if there is none. */
  readonly manifest: string | null
  /** Other settings, such as its instructions. */
  readonly definition?: Omit<PlanAgentInput, 'depends_on'>
}

type FoundPlan =
  | { readonly ok: true; readonly input: PlanInput }
  | { readonly ok: false; readonly problems: readonly Problem[] }

/** Derives a plan from existing workspaces. The result is not checked yet. */
export function planFromManifests(workspaces: readonly FoundWorkspace[]): FoundPlan {
  const problems: Problem[] = []
  const agents: [string, PlanAgentInput][] = []
  for (const { name, manifest, definition = {} } of workspaces) {
    const read = manifest === null ? { ok: true as const, manifest: {} } : readManifest(manifest)
    if (read.ok) {
      const dependsOn = dependenciesOf(read.manifest)
      agents.push([name, { ...definition, ...(dependsOn.length > 0 && { depends_on: dependsOn }) }])
    } else {
      const hint = 'It should be { "depends_on": [{ "agent", "outputs", "copy_to" }], "wait_for": [] }.'
      problems.push({ line: 0, column: 0, path: `${name}/inbox/dependencies.json`, message: read.why, hint })
    }
  }
  return problems.length > 0
    ? { ok: false, problems }
    : { ok: true, input: { agents: Object.fromEntries(agents) } }
}

type ReadManifest = { ok: true; manifest: DependencyManifest } | { ok: false; why: string }

export function readManifest(text: string): ReadManifest {
  if (text.length > MANIFEST_BYTES) return { ok: false, why: 'is too large' }
  let value: unknown
  try {
    value = JSON.parse(text.replace(/^\uFEFF/, ''))
  } catch {
    return { ok: false, why: 'is not JSON' }
  }
  const parsed = ManifestSchema.safeParse(value)
  if (parsed.success) return { ok: true, manifest: parsed.data }
  const issue = parsed.error.issues[0]!
  return { ok: false, why: `${issue.path.join('.') || 'the whole'}: ${issue.message}` }
}

/** Agents that are only in wait_for get `outputs: []`. */
function dependenciesOf({
  depends_on = [],
  wait_for = [],
}: DependencyManifest): NonNullable<PlanAgentInput['depends_on']> {
  const giving = depends_on.map(({ agent, outputs, copy_to, on_failure }) => ({
    agent,
    ...(outputs !== undefined && { outputs }),
    ...(copy_to !== undefined && { copy_to }),
    ...(on_failure !== undefined && { on_failure }),
  }))
  const named = new Set(giving.map(({ agent }) => agent))
  const waiting = [...new Set(wait_for)].filter((agent) => !named.has(agent))
  return [...giving, ...waiting.map((agent) => ({ agent, outputs: [] }))]
}

/** Writes a plan as YAML, for people to edit. */
export function planText(input: PlanInput): string {
  const { name, goal, concurrency, timeout, ask_timeout, messages, agents, fixers } = input
  const ordered = { name, goal, concurrency, timeout, ask_timeout, messages, agents, fixers }
  const written = Object.fromEntries(Object.entries(ordered).filter(([, value]) => value !== undefined))
  const text = stringify(written, { lineWidth: 110, aliasDuplicateObjects: false })
  return `# yaml-language-server: $schema=./node_modules/orchub/plan.schema.json\n${text}`
}
