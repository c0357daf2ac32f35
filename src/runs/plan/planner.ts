import { z } from 'zod'
import type { UsageTracker } from '../../agents/usage-and-limits.ts'
import { PROGRAMS } from '../../base/agent.ts'
import { AppError } from '../../base/errors.ts'
import { excerpt } from '../../base/excerpt.ts'
import type { Team } from '../../commands/team.ts'
import { FENCE_RULE, fence } from '../../llm/fence-untrusted-text.ts'
import type { Models, ObjectCall } from '../../llm/llm.ts'
import type { Problem } from '../../yaml/problem.ts'
import { WORKSPACE_TEMPLATES } from '../plan.ts'
import { planText, readPlan } from './read-plan.ts'
import type { PlanAgentInput, PlanInput } from './validate-plan.ts'

interface ProposedPlan {
  /** The text of plan.yaml. */
  readonly plan: string
  /** Mistakes that keep it from running. */
  readonly problems: readonly Problem[]
  readonly model: string
}

/** Lets a model propose a plan, for people to edit. Starts nothing. */
export interface Planner {
  propose(goal: string, model: string | undefined): Promise<ProposedPlan>
}

interface PlannerOptions {
  models: Models | undefined
  usageTracker: Pick<UsageTracker, 'ownCall'>
  team(): Team
}

export function createPlanner({ models, usageTracker, team }: PlannerOptions): Planner {
  return {
    async propose(goal, named) {
      const { config } = team()
      const model = named ?? config.runs.planner
      if (model === undefined || models === undefined) throw noPlanner()
      if (!Object.hasOwn(config.models, model)) throw unknownModel(model, Object.keys(config.models))
      const available = availableIn(team())
      const known = { agents: config.agents.map(({ name }) => name), models: Object.keys(config.models) }
      let before: { plan: string; problems: string[] } | undefined
      for (;;) {
        const call = usageTracker.ownCall('plan')
        if (call === undefined) throw spendingLimitReached()
        const prompt = plannerPrompt({ goal, available, ...(before === undefined ? {} : { before }) })
        const answer = await models.generateObject({
          ...{ model, schema: Proposal, purpose: 'plan' },
          ...prompt,
          ...call,
        })
        if (!answer.ok) {
          throw new AppError('RUNTIME_FAILED', `The model ${model} proposed no plan: ${answer.message}`, {
            hint: answer.hint,
          })
        }
        const plan = planText(inputOf(answer.value, goal))
        const read = readPlan(plan, { team: known })
        const problems = read.ok ? [] : read.error
        // Let the model correct its mistakes once; after that a person does.
        if (problems.length === 0 || before !== undefined) return { plan, problems, model }
        before = {
          plan,
          problems: problems.map(({ line, message, hint }) => `line ${line}: ${message} (${hint})`),
        }
      }
    },
  }
}

function availableIn({ config }: Team): string[] {
  return [
    ...config.agents.map(({ name, role = '', capabilities }) =>
      JSON.stringify({ by: 'agent', who: name, role, capabilities }),
    ),
    ...Object.keys(config.models).map((who) => JSON.stringify({ by: 'model', who })),
    ...PROGRAMS.filter((program) => program !== 'any').map((who) => JSON.stringify({ by: 'program', who })),
    JSON.stringify({ by: 'command', who: 'a command for /bin/sh that runs in the folder of the agent' }),
  ]
}

function inputOf({ name, agents }: Proposal, goal: string): PlanInput {
  return { name, goal, agents: Object.fromEntries(agents.map((agent) => [agent.name, agentOf(agent)])) }
}

function agentOf(proposed: Proposal['agents'][number]): PlanAgentInput {
  const { template, objective, context, requirements, success_criteria, constraints } = proposed
  const { outputs, depends_on } = proposed
  const dependencies = depends_on.map(({ agent, outputs: wanted }) =>
    wanted.length === 0 ? agent : { agent, outputs: wanted },
  )
  return {
    ...runnerOf(proposed),
    ...(template === 'generic' ? {} : { template }),
    instructions: { objective, ...filled({ context, requirements, success_criteria, constraints }) },
    ...filled({ outputs, depends_on: dependencies }),
  }
}

/** Leaves out empty texts and lists. */
function filled<Fields extends Record<string, string | unknown[]>>(fields: Fields): Partial<Fields> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value.length > 0)) as Partial<Fields>
}

function runnerOf({ by, who }: Pick<Proposal['agents'][number], 'by' | 'who'>): PlanAgentInput {
  switch (by) {
    case 'agent':
      return { agent: who }
    case 'model':
      return { model: who }
    case 'command':
      return { command: who }
    case 'program':
      return { program: who as (typeof PROGRAMS)[number] }
    case 'someone':
      return {}
  }
}

function noPlanner(): AppError {
  return new AppError('NOT_FOUND', 'No planner model is configured', {
    hint: 'Add "runs: { planner: NAME }" to orc.yaml, with a name from "models".',
  })
}

function unknownModel(model: string, known: readonly string[]): AppError {
  return new AppError('NOT_FOUND', `There is no model "${model.slice(0, 100)}"`, {
    hint: `orc.yaml has ${known.join(', ') || 'none'}.`,
  })
}

function spendingLimitReached(): AppError {
  return new AppError('CONFLICT', 'The spending limit of the service is reached', {
    hint: 'See "limits.spend" in orc.yaml.',
  })
}

const text = z.string().max(4000)
const lines = z.array(text).max(20)

/** A proposed plan. Uses lists instead of records, because every provider can enforce those. */
const Proposal = z.object({
  name: z.string().min(1).max(100).describe('Name of the plan, in a few words.'),
  agents: z
    .array(
      z.object({
        name: z
          .string()
          .max(64)
          .describe('Letters, digits, _ and -, beginning with a letter, such as collector.'),
        by: z
          .enum(['agent', 'model', 'program', 'command', 'someone'])
          .describe(
            'Kind of worker: a member of the team, a model, an agent program, a shell command, or somebody outside.',
          ),
        who: z.string().max(2000).describe('Name of the member, model or program; the command; or empty.'),
        template: z.enum(WORKSPACE_TEMPLATES),
        objective: text.min(1).describe('The goal of the agent, in a clear statement.'),
        context: text.describe('Background that the agent needs; may be empty.'),
        requirements: lines,
        success_criteria: lines.describe('Measurable outcomes.'),
        constraints: lines,
        outputs: z
          .array(z.string().max(200))
          .max(20)
          .describe(
            'Required files, such as outbox/report.md. Do not name summary.md, which is always required.',
          ),
        depends_on: z
          .array(
            z.object({
              agent: z.string().max(64),
              outputs: z.array(z.string().max(200)).max(20).describe('Outputs to copy; empty: all.'),
            }),
          )
          .max(50),
      }),
    )
    .min(1)
    .max(50),
})
type Proposal = z.output<typeof Proposal>

interface PlannerQuestion {
  readonly goal: string
  /** Available agents, models and programs, one in each line. */
  readonly available: readonly string[]
  /** The earlier proposal and its mistakes. */
  readonly before?: { readonly plan: string; readonly problems: readonly string[] }
}

const MOST = { goal: 20_000, available: 20_000, plan: 60_000 }

const SYSTEM = [
  'You break a goal down into a plan: a few agents that hand files to each other, each with one clear piece of work.',
  'Use as few agents as the goal needs, and let independent work run in parallel. An agent knows only its instructions',
  'and its input files. Dependencies have no cycles, and name only files that the other agent declares as outputs.',
  FENCE_RULE,
].join('\n')

function plannerPrompt({ goal, available, before }: PlannerQuestion): Pick<ObjectCall, 'system' | 'prompt'> {
  const prompt = [
    'The goal:',
    fence('goal', excerpt(goal, MOST.goal)),
    'Available workers, one in each line:',
    fence('available', excerpt(available.join('\n'), MOST.available)),
    ...(before === undefined
      ? []
      : [
          'Your previous proposal:',
          fence('plan', excerpt(before.plan, MOST.plan)),
          `It has mistakes: ${before.problems.join('; ')}. Propose a corrected plan.`,
        ]),
    'Propose the plan.',
  ].join('\n\n')
  return { system: SYSTEM, prompt }
}
