import { z } from 'zod'
import { excerpt } from '../../base/excerpt.ts'
import { FENCE_RULE, fence } from '../../llm/fence.ts'
import type { ModelFailure, Models, ObjectCall } from '../../llm/llm.ts'
import type { Asking } from '../../tasks/validation/judge-prompt.ts'
import { WORKSPACE_TEMPLATES } from '../plan.ts'

const text = z.string().max(4000)
const lines = z.array(text).max(20)

/** A plan as a model proposes it: lists and not records, which every provider can be held to. */
export const Proposal = z.object({
  name: z.string().min(1).max(100).describe('What the plan is called, in a few words.'),
  agents: z
    .array(
      z.object({
        name: z
          .string()
          .max(64)
          .describe('Letters, digits, _ and -; begins with a letter. Such as collector.'),
        by: z
          .enum(['agent', 'model', 'program', 'command', 'someone'])
          .describe(
            'Who does it: a member of the team, a model, an agent program, a shell command, or someone outside.',
          ),
        who: z
          .string()
          .max(2000)
          .describe('The name of the member, model or program; the command; or empty.'),
        template: z.enum(WORKSPACE_TEMPLATES),
        objective: text.min(1).describe('What is to be accomplished, in a clear statement.'),
        context: text.describe('Background that the agent needs; may be empty.'),
        requirements: lines,
        success_criteria: lines.describe('Outcomes that can be measured.'),
        constraints: lines,
        outputs: z
          .array(z.string().max(200))
          .max(20)
          .describe(
            'Files it must make, such as outbox/report.md. summary.md is always made, and is not named.',
          ),
        depends_on: z
          .array(
            z.object({
              agent: z.string().max(64),
              outputs: z.array(z.string().max(200)).max(20).describe('Which of its outputs; empty: all.'),
            }),
          )
          .max(50),
      }),
    )
    .min(1)
    .max(50),
})
export type Proposal = z.output<typeof Proposal>

export interface PlannerQuestion {
  readonly goal: string
  /** Who there is, one a line. */
  readonly available: readonly string[]
  /** An earlier proposal, and what is wrong with it. */
  readonly before?: { readonly plan: string; readonly problems: readonly string[] }
}

const MOST = { goal: 20_000, available: 20_000, plan: 60_000 }

const SYSTEM = [
  'You break a goal down into a plan: a few agents, each with one clear piece of work, who hand files to each other.',
  'Use as few as the goal needs. What can be done at once is not made to wait. Each agent knows only its instructions and',
  'the files it is given. No circles. Whoever depends on another names only files that the other declares.',
  FENCE_RULE,
].join('\n')

export function plannerPrompt({
  goal,
  available,
  before,
}: PlannerQuestion): Pick<ObjectCall, 'system' | 'prompt'> {
  const prompt = [
    'The goal:',
    fence('goal', excerpt(goal, MOST.goal)),
    'Who is available, one a line:',
    fence('available', excerpt(available.join('\n'), MOST.available)),
    ...(before === undefined
      ? []
      : [
          'Your proposal before this one:',
          fence('plan', excerpt(before.plan, MOST.plan)),
          `It cannot be carried out: ${before.problems.join('; ')}. Propose it again, put right.`,
        ]),
    'Propose the plan.',
  ].join('\n\n')
  return { system: SYSTEM, prompt }
}

export async function askForPlan(
  models: Models,
  model: string,
  question: PlannerQuestion,
  asking: Asking = {},
): Promise<{ ok: true; proposal: Proposal } | ModelFailure> {
  const answer = await models.generateObject({
    model,
    schema: Proposal,
    purpose: 'plan',
    ...plannerPrompt(question),
    ...asking,
  })
  return answer.ok ? { ok: true, proposal: answer.value } : answer
}
