import { z } from 'zod'
import { AGENT_NAME, PROGRAMS } from '../../base/agent.ts'
import { DURATION } from '../../base/durations.ts'
import { EDGE_POLICIES, RECOVERIES, WORKSPACE_TEMPLATES } from '../plan.ts'

/** A minimal plan, for hints. */
export const SMALLEST =
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

/** The keys of plan.yaml. `validate.ts` checks what depends on several keys, such as cycles. */
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
