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
    objective: text.min(1).describe('What is to be accomplished, in a clear statement.'),
    context: text.optional().describe('Background that the agent needs.'),
    inputs_provided: lines('What the inbox holds. Default: a line for each input and each dependency.'),
    requirements: lines('What the work must fulfil, one by one.'),
    success_criteria: lines('Outcomes that can be measured. A judge goes by them.'),
    constraints: lines('Limits of time, means and quality.'),
    output_expectations: lines('What to put into the outbox. Default: a line for each declared output.'),
  }),
])

const InputSchema = z.union([
  oneLine(1000),
  z.strictObject({
    path: oneLine(1000).describe('A file or folder. Relative to the plan.'),
    to: oneLine(500).optional().describe('Where it goes: inbox/NAME. Default: its own name in inbox/.'),
    description: oneLine(1000).optional().describe('What it holds, in one line for the instructions.'),
  }),
])

const CheckSchema = z.union([
  command,
  z.strictObject({
    name: oneLine(64).optional().describe('What the check is called. Default: its command.'),
    command: command.describe('A command for the shell, run in the workspace. It passes if it exits with 0.'),
    timeout: duration.optional().describe('After which it has failed. Default: 5m.'),
  }),
])

const DependencySchema = z.union([
  name,
  z.strictObject({
    agent: name.describe('The agent that must have ended before this one begins.'),
    outputs: z
      .array(oneLine(500))
      .max(200)
      .nullish()
      .describe(
        'Which of its outputs are copied, as globs: [outbox/data.json, "outbox/charts/*.svg"]. An empty list: it is only waited for. Default: all of them.',
      ),
    copy_to: oneLine(500)
      .optional()
      .describe('The folder they are copied into: inbox/source_data/. Default: inbox/AGENT/.'),
    on_failure: z
      .enum(EDGE_POLICIES)
      .optional()
      .describe(
        'If that agent failed or was skipped: fail (the default) fails this one, skip skips it, proceed runs it without these outputs.',
      ),
  }),
])

const runner = {
  command: command
    .optional()
    .describe('A command for the shell, run in the workspace: a plain command is an agent.'),
  agent: name.optional().describe('A member of the team in orc.yaml who does it.'),
  program: z
    .enum(PROGRAMS)
    .optional()
    .describe(
      'An agent program that is started for it: claude-code, codex, gemini, opencode, or any command line.',
    ),
  runtime: z
    .enum(['tmux', 'acp'])
    .optional()
    .describe('Where the program runs. tmux (the default): in a terminal. acp: without one.'),
  model: name
    .optional()
    .describe('A name from "models" in orc.yaml: a model with a prompt, and nothing else.'),
  with: z
    .record(z.string(), z.unknown())
    .nullish()
    .describe('Settings for the program or the model, as it defines them.'),
}

const PlanAgentSchema = z
  .strictObject({
    ...runner,
    template: z
      .enum(WORKSPACE_TEMPLATES)
      .optional()
      .describe('What its SKILL.md is made from. Default: generic.'),
    instructions: InstructionsSchema.nullish().describe(
      'What it is told in inbox/instructions.md: the objective as text, or all its sections.',
    ),
    success_criteria: lines('The same as in the instructions, for those given as text.'),
    inputs: z
      .array(InputSchema)
      .max(1000)
      .nullish()
      .describe(
        'Files and folders copied into its inbox: [brief.md, { path: data.csv, to: inbox/raw.csv }].',
      ),
    outputs: z
      .array(oneLine(500))
      .max(200)
      .nullish()
      .describe(
        'Deliverables it must make, as globs: [outbox/report.md, "outbox/data/*.csv"]. Default: any one. summary.md must be there in any case.',
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
        'A name from "models" or "agents" in orc.yaml: that model, or that agent as a reviewer, judges by the success criteria; off. Default: as in orc.yaml.',
      ),
    retries: z
      .int()
      .min(0)
      .max(20)
      .optional()
      .describe('How often it is tried again, after 1, 2, 4, 8, 16 s. Default: 3.'),
    timeout: duration.optional().describe('How long one attempt may take. Default: 30m.'),
    stall_timeout: z
      .union([off, duration])
      .optional()
      .describe(
        'How long it may go without a sign of life (status.json, hooks). Default: 10m; off for a plain command, whose end is seen.',
      ),
    worktree: z
      .boolean()
      .optional()
      .describe('true: it works in a git worktree on a branch of its own. Default: false.'),
    on_error: z
      .enum(RECOVERIES)
      .optional()
      .describe(
        'When its retries are used up: retry (the default) means that it has failed; fix: its inputs are changed by the fixer or a person, and it is tried again; skip: the others go on; escalate: a person decides.',
      ),
    fixer: name
      .optional()
      .describe(
        'Who changes the inputs, with "on_error: fix": a name from "fixers", or of a member of the team.',
      ),
    max_fixes: z.int().min(1).max(20).optional().describe('How often, before a person is asked. Default: 1.'),
    depends_on: z
      .array(DependencySchema)
      .max(10_000)
      .nullish()
      .describe(
        'Whom it waits for, and what it gets: [collector, { agent: schema, outputs: [outbox/schema.json] }].',
      ),
  })
  .describe(
    'One agent. Without command, agent, program or model, someone outside does the work in its workspace.',
  )

const FixerSchema = z
  .strictObject({
    ...runner,
    instructions: InstructionsSchema.nullish().describe('What it is told besides the error report.'),
    timeout: duration.optional().describe('How long one fix may take. Default: 30m.'),
  })
  .describe('One fixer: it gets the error report and the inputs, and puts corrected inputs into its outbox.')

/** The keys of plan.yaml. `validate.ts` checks what depends on several keys, such as cycles. */
export const PlanSchema = z
  .strictObject({
    name: oneLine(200).optional().describe('What the plan is called. Default: the name of its file.'),
    goal: text.optional().describe('What all of it is for.'),
    concurrency: z
      .int()
      .min(1)
      .max(10_000)
      .optional()
      .describe(`How many agents run at once. Default: ${DEFAULTS.concurrency}.`),
    timeout: duration.optional().describe('How long the whole run may take. Default: as long as it needs.'),
    ask_timeout: z
      .union([off, duration])
      .optional()
      .describe(
        'How long a person has to decide on an agent that failed; then it has. Default: 24h, or off.',
      ),
    messages: z
      .boolean()
      .optional()
      .describe(
        'true: the agents may leave messages for each other in messages/ beside their workspaces. Default: false; handing on files is better.',
      ),
    agents: z
      .record(name, PlanAgentSchema)
      .describe(
        'The agents by name. A name starts with a letter, then letters, digits, _ and -, at most 64.',
      ),
    fixers: z
      .record(name, FixerSchema)
      .nullish()
      .describe('Agents that change the inputs of others that failed. They run only then.'),
  })
  .meta({ title: 'plan.yaml', description: 'A graph of agents that hand files to each other.' })

/** plan.yaml as written. */
export type PlanInput = z.input<typeof PlanSchema>
export type PlanAgentInput = PlanInput['agents'][string]
export type RunnerInput = Pick<PlanAgentInput, 'command' | 'agent' | 'program' | 'runtime' | 'model' | 'with'>

/** For editors. Their YAML plugins support draft 7 best. */
export function planJsonSchema(): Record<string, unknown> {
  return z.toJSONSchema(PlanSchema, { target: 'draft-7', io: 'input' })
}
