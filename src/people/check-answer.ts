import { z } from 'zod'
import { excerpt } from '../base/excerpt.ts'
import { FENCE_RULE, fence } from '../llm/fence.ts'
import type { ModelCallOptions, ModelFailure, Models, ObjectCall } from '../llm/llm.ts'

export const AnswerVerdict = z.object({
  valid: z.boolean().describe('Whether the answer answers the question, be it briefly or by declining.'),
  reason: z.string().trim().min(1).max(1000).describe('Why, in one sentence, for the person who answered.'),
})

export interface CheckedAnswer {
  readonly valid: boolean
  readonly reason: string
  /** Why the model couldn't check the answer, which then counts. */
  readonly failure?: ModelFailure
}

const MOST = 20_000

const SYSTEM = [
  'You decide whether what a person wrote answers the question they were asked. Be lenient: a short answer, a choice,',
  '"I do not know" and a refusal are answers. Invalid is only what has nothing to do with the question.',
  FENCE_RULE,
].join('\n')

export function answerPrompt(question: string, answer: string): Pick<ObjectCall, 'system' | 'prompt'> {
  const prompt = [
    'The question:',
    fence('question', excerpt(question, MOST)),
    'The answer:',
    fence('answer', excerpt(answer, MOST)),
    'Does it answer the question?',
  ].join('\n\n')
  return { system: SYSTEM, prompt }
}

/** Asks a model whether the answer fits the question (S2.12). */
export async function checkAnswer(
  models: Models,
  model: string | undefined,
  { question, answer }: { question: string; answer: string },
  asking: ModelCallOptions = {},
): Promise<CheckedAnswer> {
  if (isBlank(answer)) return { valid: false, reason: 'The answer is blank.' }
  if (model === undefined) return { valid: true, reason: 'The answer is not blank.' }
  const verdict = await models.generateObject({
    model,
    schema: AnswerVerdict,
    purpose: 'answer-check',
    ...answerPrompt(question, answer),
    ...asking,
  })
  if (verdict.ok) return verdict.value
  return { valid: true, reason: `Not checked: ${verdict.message}`, failure: verdict }
}

/** Whether the text is only white space, control and invisible characters. */
export function isBlank(text: string): boolean {
  return /^[\s\p{C}\u115f\u1160\u3164\uffa0\u2800]*$/u.test(text)
}
