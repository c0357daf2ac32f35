/** inbox/dependencies.json (S4.13), written from a plan, and a plan read back from a set of them. */
import { z } from 'zod'
import type { Problem } from '../../yaml/problem.ts'
import type { AgentInput, PlanInput } from '../plan/schema.ts'
import { EDGE_POLICIES, type PlanAgent } from '../plan.ts'

const MAX_BYTES = 1024 * 1024

/** Keys that are not ours are left alone: others may have written it. */
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
export type Manifest = z.output<typeof ManifestSchema>

export function manifestOf({ dependsOn }: PlanAgent): Manifest {
  return {
    depends_on: dependsOn
      // Whom it only waits for is in wait_for, which has no place for a policy.
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
  /** The text of its inbox/dependencies.json; null where there is none. */
  readonly manifest: string | null
  /** What else is known of it, such as its instructions. */
  readonly definition?: Omit<AgentInput, 'depends_on'>
}

export type FoundPlan =
  | { readonly ok: true; readonly input: PlanInput }
  | { readonly ok: false; readonly problems: readonly Problem[] }

/** The plan that existing workspaces amount to. It is as checked as any plan.yaml: not yet. */
export function planFromManifests(workspaces: readonly FoundWorkspace[]): FoundPlan {
  const problems: Problem[] = []
  const agents: [string, AgentInput][] = []
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

type ReadManifest = { ok: true; manifest: Manifest } | { ok: false; why: string }

export function readManifest(text: string): ReadManifest {
  if (text.length > MAX_BYTES) return { ok: false, why: 'is too large' }
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

/** Whom it only waits for gives nothing (`outputs: []`). */
function dependenciesOf({ depends_on = [], wait_for = [] }: Manifest): NonNullable<AgentInput['depends_on']> {
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
