import { stringify } from 'yaml'
import { z } from 'zod'
import type { Result } from '../../base/result.ts'
import { type Problem, reportInto, sortProblems } from '../../yaml/problem.ts'
import { checkShape, describeBy } from '../../yaml/shape.ts'
import { readYaml } from '../../yaml/yaml.ts'
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

const words = { ...describeBy(planJsonSchema, SMALLEST), wellMeant }

/** Reads plan.yaml from text or bytes. Returns all its mistakes as values, in the order of the file. */
export function readPlan(
  source: string | Uint8Array,
  { name = 'plan', team = {} }: PlanOptions = {},
): Result<Plan, readonly Problem[]> {
  const read = readYaml(source, { maxBytes: MAX_BYTES, maxNodes: MAX_VALUES, smallest: SMALLEST })
  if (!read.ok) return read
  const { value, locate } = read.value
  const problems: Problem[] = []
  const report = reportInto(problems, locate)
  const input = checkShape(PlanSchema, words, value, report)
  if (input === undefined) return { ok: false, error: sortProblems(problems) }
  const plan = resolvePlan(input, name, report)
  validatePlan(plan, team, report)
  return problems.length > 0 ? { ok: false, error: sortProblems(problems) } : { ok: true, value: plan }
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

/** Writes inbox/dependencies.json of an agent. */
export function manifestText({ dependsOn }: PlanAgent): string {
  const manifest: DependencyManifest = {
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
  return `${JSON.stringify(manifest, null, 2)}\n`
}

export interface FoundWorkspace {
  readonly name: string
  /** Text of inbox/dependencies.json; null if there is none. */
  readonly manifest: string | null
  /** Other settings, such as its instructions. */
  readonly definition?: Omit<PlanAgentInput, 'depends_on'>
}

/** Derives a plan from existing workspaces. The result is not checked yet. */
export function planFromManifests(
  workspaces: readonly FoundWorkspace[],
): Result<PlanInput, readonly Problem[]> {
  const problems: Problem[] = []
  const agents: [string, PlanAgentInput][] = []
  for (const { name, manifest, definition = {} } of workspaces) {
    const read = readManifest(manifest ?? '{}')
    if (read.ok) {
      const dependsOn = dependenciesOf(read.value)
      agents.push([name, { ...definition, ...(dependsOn.length > 0 && { depends_on: dependsOn }) }])
    } else {
      const hint = 'It should be { "depends_on": [{ "agent", "outputs", "copy_to" }], "wait_for": [] }.'
      problems.push({
        line: 0,
        column: 0,
        path: `${name}/inbox/dependencies.json`,
        message: read.error,
        hint,
      })
    }
  }
  return problems.length > 0
    ? { ok: false, error: problems }
    : { ok: true, value: { agents: Object.fromEntries(agents) } }
}

function readManifest(text: string): Result<DependencyManifest, string> {
  if (text.length > MANIFEST_BYTES) return { ok: false, error: 'is too large' }
  let value: unknown
  try {
    value = JSON.parse(text.replace(/^\uFEFF/, ''))
  } catch {
    return { ok: false, error: 'is not JSON' }
  }
  const parsed = ManifestSchema.safeParse(value)
  if (parsed.success) return { ok: true, value: parsed.data }
  const issue = parsed.error.issues[0]!
  return { ok: false, error: `${issue.path.join('.') || 'the whole'}: ${issue.message}` }
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
