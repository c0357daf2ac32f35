import type { Meter } from '../../agents/meter.ts'
import { AppError } from '../../base/errors.ts'
import { PROGRAMS } from '../../base/program-names.ts'
import type { Team } from '../../commands/team.ts'
import type { Problem } from '../../config/config.ts'
import type { Models } from '../../llm/llm.ts'
import { planText } from './plan-text.ts'
import { askForPlan, type Proposal } from './planner-prompt.ts'
import { readPlan } from './read-plan.ts'
import type { AgentInput, PlanInput } from './schema.ts'

export interface ProposedPlan {
  /** The text of plan.yaml. */
  readonly plan: string
  /** What would keep it from being run. */
  readonly problems: readonly Problem[]
  readonly model: string
}

/** Has a model propose plans. They are shown and edited; nothing is started by it. */
export interface Planner {
  propose(goal: string, model: string | undefined): Promise<ProposedPlan>
}

export interface PlannerOptions {
  models: Models | undefined
  meter: Pick<Meter, 'ownCall'>
  team(): Team
}

export function createPlanner({ models, meter, team }: PlannerOptions): Planner {
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
        const call = meter.ownCall('plan')
        if (call === undefined) throw noMoney()
        const answer = await askForPlan(
          models,
          model,
          { goal, available, ...(before === undefined ? {} : { before }) },
          call,
        )
        if (!answer.ok) {
          throw new AppError('RUNTIME_FAILED', `The model ${model} proposed no plan: ${answer.message}`, {
            hint: answer.hint,
          })
        }
        const plan = planText(inputOf(answer.proposal, goal))
        const read = readPlan(plan, { team: known })
        const problems = read.ok ? [] : read.problems
        // Once more with what is wrong with it, and then a person has a look.
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
    JSON.stringify({ by: 'command', who: 'a command for /bin/sh, run in the folder of the agent' }),
  ]
}

function inputOf({ name, agents }: Proposal, goal: string): PlanInput {
  return { name, goal, agents: Object.fromEntries(agents.map((agent) => [agent.name, agentOf(agent)])) }
}

function agentOf(proposed: Proposal['agents'][number]): AgentInput {
  const { template, objective, context, requirements, success_criteria, constraints } = proposed
  const { outputs, depends_on } = proposed
  return {
    ...runnerOf(proposed),
    ...(template === 'generic' ? {} : { template }),
    instructions: {
      objective,
      ...(context === '' ? {} : { context }),
      ...(requirements.length === 0 ? {} : { requirements }),
      ...(success_criteria.length === 0 ? {} : { success_criteria }),
      ...(constraints.length === 0 ? {} : { constraints }),
    },
    ...(outputs.length === 0 ? {} : { outputs }),
    ...(depends_on.length === 0
      ? {}
      : {
          depends_on: depends_on.map(({ agent, outputs: wanted }) =>
            wanted.length === 0 ? agent : { agent, outputs: wanted },
          ),
        }),
  }
}

function runnerOf({ by, who }: Pick<Proposal['agents'][number], 'by' | 'who'>): AgentInput {
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
  return new AppError('NOT_FOUND', 'No model is named that makes plans', {
    hint: 'Add "runs: { planner: NAME }" to orc.yaml, with a name from "models".',
  })
}

function unknownModel(model: string, known: readonly string[]): AppError {
  return new AppError('NOT_FOUND', `There is no model "${model.slice(0, 100)}"`, {
    hint: `orc.yaml has ${known.join(', ') || 'none'}.`,
  })
}

function noMoney(): AppError {
  return new AppError('CONFLICT', 'The service may not spend more', {
    hint: 'See "limits.spend" in orc.yaml.',
  })
}
