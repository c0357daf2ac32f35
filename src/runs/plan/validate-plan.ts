import { z } from 'zod'
import { AGENT_NAME, foldName, PROGRAMS, RESERVED_NAMES } from '../../base/agent.ts'
import { DURATION } from '../../base/durations.ts'
import { type Glob, globsMeet, matchesGlob, parseGlob } from '../../base/glob.ts'
import { didYouMean } from '../../base/suggestion.ts'
import type { Report } from '../../yaml/problem.ts'
import {
  ALL_OUTPUTS,
  type Dependency,
  EDGE_POLICIES,
  findCycles,
  graphOf,
  MESSAGES,
  type Plan,
  type PlanAgent,
  type PlanTeam,
  RECOVERIES,
  type Runner,
  UNDECLARED,
  WORKSPACE_TEMPLATES,
} from '../plan.ts'

/** A minimal plan, for hints. */
export const MINIMAL_EXAMPLE =
  'agents: { hello: { command: "echo hello > outbox/hello.txt; echo done > outbox/summary.md" } }'

export const DEFAULTS = {
  concurrency: 32,
  timeoutMs: 30 * 60_000,
  stallMs: 10 * 60_000,
  askMs: 24 * 3_600_000,
  checkMs: 5 * 60_000,
  maxFixes: 1,
} as const

/** Text for prompts, terminals and logs must not contain control characters. */
const oneLine = (most: number) =>
  z
    .string()
    .min(1)
    .max(most)
    .regex(/^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$/, { error: 'must be one line without control characters' })
const text = z.string().max(20_000)
const name = z.string().regex(AGENT_NAME, { error: 'is not a valid agent name' })
const duration = z.string().regex(DURATION, { error: 'is not a duration' })
const off = z.union([z.literal('off'), z.literal(false)])
const command = z.string().min(1).max(20_000)
const lines = (description: string) =>
  z
    .union([text.min(1), z.array(text.min(1)).max(200)])
    .nullish()
    .describe(description)

const InstructionsSchema = z.union([
  text.min(1),
  z.strictObject({
    objective: text.min(1).describe('The goal of the agent, in a clear statement.'),
    context: text.optional().describe('Background that the agent needs.'),
    inputs_provided: lines('Content of the inbox. Default: a line for each input and each dependency.'),
    requirements: lines('Requirements for the work, one in each line.'),
    success_criteria: lines('Measurable outcomes. A judge decides by them.'),
    constraints: lines('Limits of time, resources and quality.'),
    output_expectations: lines('Files to put into the outbox. Default: a line for each declared output.'),
  }),
])

const InputSchema = z.union([
  oneLine(1000),
  z.strictObject({
    path: oneLine(1000).describe('A file or folder, relative to the plan.'),
    to: oneLine(500).optional().describe('Target in the inbox: inbox/NAME. Default: its own name.'),
    description: oneLine(1000).optional().describe('Its content, in one line for the instructions.'),
  }),
])

const CheckSchema = z.union([
  command,
  z.strictObject({
    name: oneLine(64).optional().describe('Name of the check. Default: its command.'),
    command: command.describe('A shell command that runs in the workspace. It passes if it exits with 0.'),
    timeout: duration.optional().describe('The check fails after this time. Default: 5m.'),
  }),
])

const DependencySchema = z.union([
  name,
  z.strictObject({
    agent: name.describe('This agent starts after the named one has ended.'),
    outputs: z
      .array(oneLine(500))
      .max(200)
      .nullish()
      .describe(
        'Outputs to copy, as globs: [outbox/data.json, "outbox/charts/*.svg"]. An empty list: wait for the agent and copy nothing. Default: all outputs.',
      ),
    copy_to: oneLine(500).optional().describe('Target folder: inbox/source_data/. Default: inbox/AGENT/.'),
    on_failure: z
      .enum(EDGE_POLICIES)
      .optional()
      .describe(
        'If that agent fails or is skipped: fail (the default) fails this agent, skip skips it, proceed runs it without these outputs.',
      ),
  }),
])

const runner = {
  command: command.optional().describe('A shell command that runs in the workspace.'),
  agent: name.optional().describe('A member of the team in orc.yaml.'),
  program: z
    .enum(PROGRAMS)
    .optional()
    .describe(
      'An agent program that is started for this work: claude-code, codex, gemini, opencode, or any command line.',
    ),
  runtime: z
    .enum(['tmux', 'acp'])
    .optional()
    .describe('How the program runs. tmux (the default): in a terminal. acp: without one.'),
  model: name.optional().describe('A name from "models" in orc.yaml: a model without tools.'),
  with: z
    .record(z.string(), z.unknown())
    .nullish()
    .describe('Settings for the program or the model, as it defines them.'),
}

const PlanAgentSchema = z
  .strictObject({
    ...runner,
    template: z.enum(WORKSPACE_TEMPLATES).optional().describe('Template of its SKILL.md. Default: generic.'),
    instructions: InstructionsSchema.nullish().describe(
      'Content of inbox/instructions.md: the objective as text, or all its sections.',
    ),
    success_criteria: lines('Success criteria for instructions that are given as text.'),
    inputs: z
      .array(InputSchema)
      .max(1000)
      .nullish()
      .describe(
        'Files and folders to copy into its inbox: [brief.md, { path: data.csv, to: inbox/raw.csv }].',
      ),
    outputs: z
      .array(oneLine(500))
      .max(200)
      .nullish()
      .describe(
        'Required deliverables, as globs: [outbox/report.md, "outbox/data/*.csv"]. Default: any one file. summary.md is always required.',
      ),
    checks: z
      .array(CheckSchema)
      .max(100)
      .nullish()
      .describe('Commands that must succeed before its work counts: [{ name: tests, command: npm test }].'),
    judge: z
      .union([off, name])
      .optional()
      .describe(
        'A name from "models" or "agents" in orc.yaml: that model, or that agent as a reviewer, judges the work by the success criteria. off: no judge. Default: the judge set in orc.yaml.',
      ),
    retries: z
      .int()
      .min(0)
      .max(20)
      .optional()
      .describe('Number of retries, after 1, 2, 4, 8, 16 s. Default: 3.'),
    timeout: duration.optional().describe('Timeout of one attempt. Default: 30m.'),
    stall_timeout: z
      .union([off, duration])
      .optional()
      .describe(
        'Stall timeout: the longest time without activity (status.json, hooks, output). Default: 10m; off for a command.',
      ),
    worktree: z
      .boolean()
      .optional()
      .describe('true: the agent works in a git worktree on its own branch. Default: false.'),
    on_error: z
      .enum(RECOVERIES)
      .optional()
      .describe(
        'What to do when its retries are exhausted. retry (the default): it fails. fix: a fixer or a person corrects its inputs, and it is tried again. skip: the others continue without it. escalate: a person decides.',
      ),
    fixer: name
      .optional()
      .describe('Corrects the inputs, with "on_error: fix": a name from "fixers", or a member of the team.'),
    max_fixes: z
      .int()
      .min(1)
      .max(20)
      .optional()
      .describe('Number of fixes before a person is asked. Default: 1.'),
    depends_on: z
      .array(DependencySchema)
      .max(10_000)
      .nullish()
      .describe(
        'Agents to wait for, with the outputs to copy from them: [collector, { agent: schema, outputs: [outbox/schema.json] }].',
      ),
  })
  .describe(
    'An agent. Without command, agent, program or model, somebody outside Orchub does the work in its workspace.',
  )

const FixerSchema = z
  .strictObject({
    ...runner,
    instructions: InstructionsSchema.nullish().describe('Instructions in addition to the error report.'),
    timeout: duration.optional().describe('Timeout of one fix. Default: 30m.'),
  })
  .describe('A fixer. It gets the error report and the inputs, and puts corrected inputs into its outbox.')

/** The keys of plan.yaml. `validatePlan` checks what depends on several keys, such as cycles. */
export const PlanSchema = z
  .strictObject({
    name: oneLine(200).optional().describe('Name of the plan. Default: the name of its file.'),
    goal: text.optional().describe('Goal of the whole plan.'),
    concurrency: z
      .int()
      .min(1)
      .max(10_000)
      .optional()
      .describe(`Number of agents that run in parallel. Default: ${DEFAULTS.concurrency}.`),
    timeout: duration.optional().describe('Timeout of the whole run. Default: none.'),
    ask_timeout: z
      .union([off, duration])
      .optional()
      .describe(
        'How long a person has to decide on an agent that failed, before it fails for good; or off. Default: 24h.',
      ),
    messages: z
      .boolean()
      .optional()
      .describe(
        'true: the agents may leave messages for each other in messages/ beside their workspaces. Default: false; prefer handing files on.',
      ),
    agents: z
      .record(name, PlanAgentSchema)
      .describe(
        'The agents by name. A name starts with a letter and has at most 64 letters, digits, _ and -.',
      ),
    fixers: z
      .record(name, FixerSchema)
      .nullish()
      .describe('Agents that correct the inputs of agents that failed. They run only when needed.'),
  })
  .meta({ title: 'plan.yaml', description: 'A graph of agents that hand files to each other.' })

/** plan.yaml as written. */
export type PlanInput = z.input<typeof PlanSchema>
export type PlanAgentInput = PlanInput['agents'][string]
export type RunnerInput = Pick<PlanAgentInput, 'command' | 'agent' | 'program' | 'runtime' | 'model' | 'with'>

/** Returns the schema for editors, whose YAML plugins support draft 7 best. */
export function planJsonSchema(): Record<string, unknown> {
  return z.toJSONSchema(PlanSchema, { target: 'draft-7', io: 'input' })
}

/** Suggestions for unknown names in one plan. Each one compares the name with all others, which takes time. */
const SUGGESTIONS = 10

/** Reports mistakes that concern several entries. */
export function validatePlan(plan: Plan, team: PlanTeam, report: Report): void {
  checkNames(plan, report)
  checkDependencies(plan, report)
  checkFixers(plan, team, report)
  checkTeam(plan, team, report)
  checkOutputs(plan, report)
  const graph = graphOf(plan)
  for (const cycle of findCycles(graph)) {
    const [first, next] = cycle as [string, string]
    const at = graph.agents.get(first)!.dependsOn.findIndex(({ agent }) => agent === next)
    const shown = cycle.length > 12 ? [...cycle.slice(0, 11), '…'] : cycle
    report(
      ['agents', first, 'depends_on', at],
      `${first} waits for itself: ${[...shown, first].join(' → ')}`,
      'Remove one of these dependencies.',
    )
  }
}

function checkNames({ agents, fixers, messages }: Plan, report: Report): void {
  const taken = new Map<string, string>()
  const named = [
    ...agents.map(({ name }) => ['agents', name] as const),
    ...fixers.map(({ name }) => ['fixers', name] as const),
  ]
  for (const [list, name] of named) {
    const folded = foldName(name)
    const other = taken.get(folded)
    if (RESERVED_NAMES.has(folded)) {
      report([list, name], `"${name}" is a reserved name`, 'Choose another name.', 'key')
    } else if (other !== undefined) {
      report(
        [list, name],
        `"${name}" is already taken by "${other}"`,
        'Names must differ by more than upper and lower case.',
        'key',
      )
    }
    taken.set(folded, name)
    if (messages && list === 'agents' && folded === MESSAGES) {
      report([list, name], `"${name}" is the name of the folder for messages`, 'Choose another name.', 'key')
    }
  }
  if (agents.length === 0) report(['agents'], 'The plan has no agents', 'Name at least one agent.')
}

function checkDependencies({ agents }: Plan, report: Report): void {
  const names = new Set(agents.map(({ name }) => name))
  let suggestions = SUGGESTIONS
  for (const { name, dependsOn } of agents) {
    const targets = new Set<string>()
    for (const [index, { agent, copyTo }] of dependsOn.entries()) {
      const path = ['agents', name, 'depends_on', index]
      if (agent === name) {
        report(path, `${name} waits for itself`, 'Remove this dependency.')
      } else if (!names.has(agent)) {
        const hint = 'Name one of the agents of this plan.'
        report(
          path,
          `There is no agent "${agent}"`,
          suggestions-- > 0 ? didYouMean(agent, names, hint) : hint,
        )
      }
      const target = `${agent} ${copyTo}`
      if (targets.has(target)) {
        report(
          path,
          `${agent} is listed twice`,
          'Put all its outputs into one entry, or copy them to two folders.',
        )
      }
      targets.add(target)
    }
  }
}

function checkFixers(plan: Plan, { agents: members }: PlanTeam, report: Report): void {
  const fixers = new Set(plan.fixers.map(({ name }) => name))
  for (const { name, runner } of plan.fixers) {
    if (runner.kind !== 'files') continue
    report(['fixers', name], `No runner for "${name}"`, 'Add command, agent, program or model.', 'key')
  }
  for (const { name, fixer, onError } of plan.agents) {
    if (fixer === null) continue
    const path = ['agents', name, 'fixer']
    if (onError !== 'fix')
      report(path, '"fixer" needs "on_error: fix"', 'Add "on_error: fix", or remove "fixer".', 'key')
    if (fixers.has(fixer) || members?.includes(fixer)) continue
    const hint = 'Name one of "fixers".'
    // Without orc.yaml, it may be a member of the team.
    if (members !== undefined)
      report(path, `There is no fixer "${fixer}"`, didYouMean(fixer, [...fixers, ...members], hint))
  }
}

const MODEL_SETTINGS: ReadonlySet<string> = new Set(['prompt'])

function checkTeam(plan: Plan, { agents, models, checkProgram }: PlanTeam, report: Report): void {
  const check = (
    known: readonly string[] | undefined,
    name: string,
    path: readonly string[],
    what: string,
  ) => {
    if (known === undefined || known.includes(name)) return
    report(path, `There is no ${what} "${name}" in orc.yaml`, didYouMean(name, known, `Add it to orc.yaml.`))
  }
  const checkRunner = (runner: Runner, path: readonly string[]) => {
    if (runner.kind === 'agent') check(agents, runner.agent, [...path, 'agent'], 'agent')
    if (runner.kind === 'program') {
      for (const { path: inside, message, hint } of checkProgram?.(runner) ?? []) {
        report([...path, 'with', ...inside], message, hint)
      }
    }
    if (runner.kind !== 'model') return
    check(models, runner.model, [...path, 'model'], 'model')
    for (const key of Object.keys(runner.with)) {
      if (MODEL_SETTINGS.has(key)) continue
      report([...path, 'with', key], `A model has no setting "${key}"`, 'It takes "prompt".', 'key')
    }
  }
  for (const { name, runner } of plan.fixers) checkRunner(runner, ['fixers', name])
  for (const { name, runner, judge } of plan.agents) {
    checkRunner(runner, ['agents', name])
    if (typeof judge === 'object' && agents !== undefined && models !== undefined) {
      check([...models, ...agents], judge.name, ['agents', name, 'judge'], 'model or agent')
    }
  }
}

/** Reports wanted outputs that no agent declares. An agent that declares none may make any file. */
function checkOutputs({ agents }: Plan, report: Report): void {
  const producers = new Map(agents.map((agent) => [agent.name, agent]))
  for (const { name, dependsOn } of agents) {
    for (const [index, { agent, outputs }] of dependsOn.entries()) {
      const producer = producers.get(agent)
      if (producer === undefined || producer.outputs.length === 0) continue
      for (const [at, output] of outputs.entries()) {
        if (mayMake(producer, output)) continue
        const message = `${agent} does not make ${output}`
        const hint = `It declares ${producer.outputs.slice(0, 10).join(', ')}.`
        report(['agents', name, 'depends_on', index, 'outputs', at], message, hint)
      }
    }
    checkCollisions(name, dependsOn, report)
  }
}

function mayMake(producer: PlanAgent, output: string): boolean {
  if (output === ALL_OUTPUTS) return true
  const wanted = globOf(output)
  return (
    producer.outputs.some((declared) => globsMeet(withAllInIt(globOf(declared)), withAllInIt(wanted))) ||
    [...UNDECLARED].some((file) => matchesGlob(wanted, file))
  )
}

/** A path without wildcards may name a folder, and then includes all its files. */
function withAllInIt(glob: Glob): Glob {
  return glob.isLiteral ? { ...glob, alternatives: glob.alternatives.map((names) => [...names, null]) } : glob
}

/** Reports files that collide in the inbox for certain. Copying finds the other collisions. */
function checkCollisions(name: string, dependsOn: readonly Dependency[], report: Report): void {
  const taken = new Map<string, string>()
  for (const [index, { agent, outputs, copyTo }] of dependsOn.entries()) {
    for (const output of outputs) {
      // Every outbox has a summary.md (S4.7).
      const file = output === ALL_OUTPUTS ? 'outbox/summary.md' : output
      if (!globOf(file).isLiteral) continue
      const target = `${copyTo}/${file.slice('outbox/'.length)}`
      const other = taken.get(target)
      if (other !== undefined && other !== agent) {
        const message = `${target} already comes from ${other}`
        report(['agents', name, 'depends_on', index], message, 'Give one of them another "copy_to".')
        break
      }
      taken.set(target, agent)
    }
  }
}

function globOf(text: string): Glob {
  const parsed = parseGlob(text)
  if (!parsed.ok) throw new Error(`Not a glob: ${text}, although resolvePlan replaces invalid ones`)
  return parsed.value
}
