import { z } from 'zod'
import { excerpt } from '../../base/excerpt.ts'
import { FENCE_RULE, fence } from '../../llm/fence.ts'
import type { ModelFailure, Models, ObjectCall, Spending } from '../../llm/llm.ts'

/** S2.11, in the seed's words. */
export const Judgement = z.object({
  completed: z.boolean().describe('Whether the report completes the task as it was given.'),
  reason: z
    .string()
    .trim()
    .min(1)
    .max(2000)
    .describe('Why, in one to three sentences, for the one who did the work.'),
})
export type Judgement = z.output<typeof Judgement>

export interface Claim {
  readonly task: string
  readonly report: string
  /** What was found out beside the report: results of checks, changed files. */
  readonly evidence?: string
}

export interface Asking {
  readonly signal?: AbortSignal
  spent?(spending: Spending): void
}

const MOST = { task: 20_000, report: 40_000, evidence: 20_000 }

const SYSTEM = [
  'You decide whether a report shows that a task was done. A claim alone is no proof: look for what the task asked',
  'for, and whether the report and the evidence hold it. Partial work is not completed work. If the evidence speaks',
  'against the report, believe the evidence.',
  FENCE_RULE,
].join('\n')

export function judgePrompt({ task, report, evidence }: Claim): Pick<ObjectCall, 'system' | 'prompt'> {
  const parts = [
    'The task as it was given:',
    fence('task', excerpt(task, MOST.task)),
    'The report of the one it was given to:',
    fence('report', excerpt(report, MOST.report)),
    ...(evidence === undefined || evidence.trim() === ''
      ? ['There is no evidence beside the report.']
      : ['The evidence beside the report:', fence('evidence', excerpt(evidence, MOST.evidence))]),
    'Does the report complete the task?',
  ]
  return { system: SYSTEM, prompt: parts.join('\n\n') }
}

/** A REPORT of completed is a claim; a model judges it (S2.11). */
export async function judgeReport(
  models: Models,
  model: string,
  claim: Claim,
  asking: Asking = {},
): Promise<({ ok: true } & Judgement) | ModelFailure> {
  const answer = await models.generateObject({
    model,
    schema: Judgement,
    purpose: 'judge',
    ...judgePrompt(claim),
    ...asking,
  })
  return answer.ok ? { ok: true, ...answer.value } : answer
}
