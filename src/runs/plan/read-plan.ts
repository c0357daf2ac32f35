import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { stringify } from 'yaml'
import { z } from 'zod'
import { DEFAULT_RETRIES } from '../../base/backoff.ts'
import { parseDuration } from '../../base/durations.ts'
import { parseGlob } from '../../base/glob.ts'
import type { Result } from '../../base/result.ts'
import { type Path, type Problem, type Report, reportInto, sortProblems } from '../../yaml/problem.ts'
import { checkShape, describeBy } from '../../yaml/shape.ts'
import { readYaml } from '../../yaml/yaml.ts'
import {
  ALL_OUTPUTS,
  type Dependency,
  EDGE_POLICIES,
  type InputFile,
  type Plan,
  type PlanAgent,
  type PlanCheck,
  type PlanInstructions,
  type PlanTeam,
  type Runner,
} from '../plan.ts'
import {
  DEFAULTS,
  MINIMAL_EXAMPLE,
  type PlanAgentInput,
  type PlanInput,
  PlanSchema,
  planJsonSchema,
  type RunnerInput,
  validatePlan,
} from './validate-plan.ts'

/** Both limits are enough for tens of thousands of agents. */
const MAX_BYTES = 8 * 1024 * 1024
const MAX_VALUES = 1_000_000

interface PlanOptions {
  /** Name of a plan that has none itself: that of its file. */
  readonly name?: string
  /** Agents and models of orc.yaml. Without it, their names are not checked. */
  readonly team?: PlanTeam
}

const hints = { ...describeBy(planJsonSchema, MINIMAL_EXAMPLE), hintForKey }

/** Reads plan.yaml from text or bytes. Returns all its mistakes as values, in the order of the file. */
export function readPlan(
  source: string | Uint8Array,
  { name = 'plan', team = {} }: PlanOptions = {},
): Result<Plan, readonly Problem[]> {
  const read = readYaml(source, { maxBytes: MAX_BYTES, maxNodes: MAX_VALUES, example: MINIMAL_EXAMPLE })
  if (!read.ok) return read
  const { value, locate } = read.value
  const problems: Problem[] = []
  const report = reportInto(problems, locate)
  const input = checkShape(PlanSchema, hints, value, report)
  if (input === undefined) return { ok: false, error: sortProblems(problems) }
  const plan = resolvePlan(input, name, report)
  validatePlan(plan, team, report)
  return problems.length > 0 ? { ok: false, error: sortProblems(problems) } : { ok: true, value: plan }
}

/** Input files that don't exist. This is not an error, because they may be created before the agent starts. */
export function missingInputs({ agents }: Plan, folder: string): string[] {
  const paths = agents.flatMap(({ inputs }) => inputs.map(({ path }) => `${path}`))
  return [...new Set(paths)].filter((path) => !existsSync(resolve(folder, path)))
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

function hintForKey(key: string, parent: readonly (string | number)[]): string | undefined {
  const here = Object.hasOwn(ELSEWHERE, key) ? ELSEWHERE[key] : undefined
  return here !== undefined && hints.knownKeys(parent).includes(here)
    ? `Here it is called "${here}".`
    : undefined
}

/** Fills in the defaults, and reports mistakes that concern a single entry. */
function resolvePlan(input: PlanInput, name: string, report: Report): Plan {
  const fixers = Object.entries(input.fixers ?? {})
  return {
    name: input.name ?? name,
    goal: input.goal ?? '',
    concurrency: input.concurrency ?? DEFAULTS.concurrency,
    timeoutMs: input.timeout === undefined ? null : parseDuration(input.timeout),
    askMs: durationOr(input.ask_timeout, DEFAULTS.askMs),
    messages: input.messages ?? false,
    agents: Object.entries(input.agents).map(([agent, written]) => resolveAgent(agent, written, report)),
    fixers: fixers.map(([fixer, written]) => ({
      name: fixer,
      runner: resolveRunner(written, ['fixers', fixer], report),
      instructions: instructionsOf(written.instructions, undefined),
      timeoutMs: written.timeout === undefined ? DEFAULTS.timeoutMs : parseDuration(written.timeout),
    })),
  }
}

function resolveAgent(name: string, input: PlanAgentInput, report: Report): PlanAgent {
  const path = ['agents', name]
  const runner = resolveRunner(input, path, report)
  return {
    name,
    runner,
    template: input.template ?? 'generic',
    instructions: instructionsOf(input.instructions, input.success_criteria),
    inputs: inputsOf(input.inputs ?? [], [...path, 'inputs'], report),
    outputs: outputsOf(input.outputs ?? [], [...path, 'outputs'], report),
    checks: (input.checks ?? []).map(checkOf),
    judge: input.judge === undefined ? 'default' : isOff(input.judge) ? 'off' : { name: input.judge },
    retries: input.retries ?? DEFAULT_RETRIES,
    timeoutMs: input.timeout === undefined ? DEFAULTS.timeoutMs : parseDuration(input.timeout),
    stallMs: durationOr(input.stall_timeout, runner.kind === 'command' ? null : DEFAULTS.stallMs),
    worktree: input.worktree ?? false,
    onError: input.on_error ?? 'retry',
    fixer: input.fixer ?? null,
    maxFixes: input.max_fixes ?? DEFAULTS.maxFixes,
    dependsOn: (input.depends_on ?? []).map((written, index) =>
      dependencyOf(written, [...path, 'depends_on', index], report),
    ),
  }
}

function isOff(written: unknown): written is 'off' | false {
  return written === 'off' || written === false
}

function durationOr(written: string | false | undefined, otherwise: number | null): number | null {
  if (written === undefined) return otherwise
  return isOff(written) ? null : parseDuration(written)
}

function linesOf(written: string | string[] | null | undefined): string[] {
  return typeof written === 'string' ? [written] : (written ?? [])
}

function instructionsOf(
  written: PlanAgentInput['instructions'],
  criteria: PlanAgentInput['success_criteria'],
): PlanInstructions {
  const sections = typeof written === 'string' ? { objective: written } : (written ?? { objective: '' })
  return {
    objective: sections.objective,
    context: sections.context ?? '',
    inputsProvided: linesOf(sections.inputs_provided),
    requirements: linesOf(sections.requirements),
    successCriteria: [...new Set([...linesOf(sections.success_criteria), ...linesOf(criteria)])],
    constraints: linesOf(sections.constraints),
    outputExpectations: linesOf(sections.output_expectations),
  }
}

function checkOf(written: NonNullable<PlanAgentInput['checks']>[number]): PlanCheck {
  const check = typeof written === 'string' ? { command: written } : written
  return {
    name: check.name ?? check.command.split('\n')[0]!.slice(0, 64),
    command: check.command,
    timeoutMs: check.timeout === undefined ? DEFAULTS.checkMs : parseDuration(check.timeout),
  }
}

function inputsOf(written: NonNullable<PlanAgentInput['inputs']>, path: Path, report: Report): InputFile[] {
  const taken = new Map<string, number>()
  return written.map((entry, index) => {
    const input = typeof entry === 'string' ? { path: entry } : entry
    const own = input.path.replace(/\/+$/, '').split('/').at(-1)!
    const target = parseInboxPath(input.to ?? `inbox/${own}`)
    const at = typeof entry === 'string' || input.to === undefined ? [...path, index] : [...path, index, 'to']
    if (!target.ok) {
      const hint = input.to === undefined ? 'Name its target with "to: inbox/NAME".' : target.error.hint
      report(at, `${input.to ?? `inbox/${own}`} ${target.error.why}`, hint)
      return { path: input.path, to: 'inbox', description: input.description ?? '' }
    }
    const first = taken.get(target.value)
    if (first !== undefined) {
      report(
        at,
        `entry ${first + 1} already uses ${target.value}`,
        'Give one of them another name with "to".',
      )
    }
    taken.set(target.value, index)
    return { path: input.path, to: target.value, description: input.description ?? '' }
  })
}

function outputsOf(written: readonly string[], path: Path, report: Report): string[] {
  return written.map((text, index) => {
    const parsed = parseOutput(text)
    if (parsed.ok) return parsed.value
    report([...path, index], `${text} ${parsed.error.why}`, parsed.error.hint)
    return ALL_OUTPUTS
  })
}

type DependencyInput = NonNullable<PlanAgentInput['depends_on']>[number]

function dependencyOf(written: DependencyInput, path: Path, report: Report): Dependency {
  const entry = typeof written === 'string' ? { agent: written } : written
  const target = parseInboxPath(entry.copy_to ?? `inbox/${entry.agent}`)
  if (!target.ok) report([...path, 'copy_to'], `${entry.copy_to} ${target.error.why}`, target.error.hint)
  return {
    agent: entry.agent,
    outputs: entry.outputs ? outputsOf(entry.outputs, [...path, 'outputs'], report) : [ALL_OUTPUTS],
    copyTo: target.ok ? target.value : 'inbox',
    onFailure: entry.on_failure ?? 'fail',
  }
}

const WAYS = ['command', 'agent', 'program', 'model'] as const

function resolveRunner(input: RunnerInput, path: Path, report: Report): Runner {
  const named = WAYS.filter((way) => input[way] !== undefined)
  const [way, second] = named
  if (second !== undefined) {
    const message = `"${way}" and "${second}" cannot both do the work`
    report([...path, second], message, `Keep one of ${named.join(', ')}.`, 'key')
  }
  if (input.runtime !== undefined && input.program === undefined) {
    report(
      [...path, 'runtime'],
      '"runtime" is for a program',
      'Add "program: claude-code", or remove "runtime".',
      'key',
    )
  }
  if (input.with && way !== 'program' && way !== 'model') {
    report([...path, 'with'], '"with" is for a program or a model', 'Remove "with".', 'key')
  }
  const settings = input.with ?? {}
  switch (way) {
    case 'command':
      return { kind: 'command', command: input.command! }
    case 'agent':
      return { kind: 'agent', agent: input.agent! }
    case 'program':
      return { kind: 'program', program: input.program!, runtime: input.runtime ?? 'tmux', with: settings }
    case 'model':
      return { kind: 'model', model: input.model!, with: settings }
    default:
      return { kind: 'files' }
  }
}

/** `why` continues a message that begins with the path. */
type ParsedPath = Result<string, { why: string; hint: string }>

/** Orchub's own files in an inbox (S4.5, S4.13, C21). */
const RESERVED: ReadonlySet<string> = new Set(['instructions.md', 'dependencies.json', 'references.json'])

const INBOX_HINT = 'Use a path inside the inbox, such as inbox/source_data/.'

/** Parses the path of a file or folder in the inbox, without `..` and wildcards. */
function parseInboxPath(text: string): ParsedPath {
  const path = text.replace(/^\.\//, '').replace(/\/$/, '')
  const parsed = parseGlob(path)
  if (!parsed.ok) return { ok: false, error: { why: parsed.error, hint: INBOX_HINT } }
  if (!parsed.value.isLiteral)
    return { ok: false, error: { why: 'must not have wildcards', hint: INBOX_HINT } }
  const [root, ...inside] = path.split('/')
  if (root !== 'inbox') return { ok: false, error: { why: 'is outside the inbox', hint: INBOX_HINT } }
  if (inside.length === 1 && RESERVED.has(inside[0]!)) {
    return { ok: false, error: { why: 'is a file that Orchub writes', hint: 'Choose another name.' } }
  }
  return { ok: true, value: path }
}

const OUTPUT_HINT = 'Use globs of files in the outbox: outbox/report.md, outbox/data/*.csv, outbox/**.'

/** Parses a glob of files in the outbox; `outbox/` may be left out. */
function parseOutput(text: string): ParsedPath {
  const written = text.replace(/^\.\//, '')
  const root = written.split('/')[0]!
  if (root === 'inbox' || root === 'workspace') {
    return { ok: false, error: { why: `is in ${root}/, whose files are not outputs`, hint: OUTPUT_HINT } }
  }
  const path = root !== 'outbox' ? `outbox/${written}` : written === 'outbox' ? 'outbox/' : written
  const whole = path.endsWith('/') ? `${path}**` : path
  const parsed = parseGlob(whole)
  return parsed.ok
    ? { ok: true, value: whole }
    : { ok: false, error: { why: parsed.error, hint: OUTPUT_HINT } }
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
      const hint = 'Write { "depends_on": [{ "agent", "outputs", "copy_to" }], "wait_for": [] }.'
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
