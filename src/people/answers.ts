import { z } from 'zod'
import type { Clock } from '../base/clock.ts'
import { AppError } from '../base/errors.ts'
import { excerpt } from '../base/excerpt.ts'
import { formatId } from '../base/ids.ts'
import type { Team } from '../commands/team.ts'
import { FENCE_RULE, fence } from '../llm/fence-untrusted-text.ts'
import type { ModelCallOptions, ModelFailure, Models, ObjectCall } from '../llm/llm.ts'
import type { Store } from '../store/store.ts'
import type { AnswerForm } from './human-request.ts'
import type { HumanRequestRow } from './people.ts'
import { formOf } from './request-view.ts'

type ReadAnswer = { ok: true; text: string; isChoice: boolean } | { ok: false; error: AppError }

/** Reads a person's answer: a choice by its text or number, the default for an empty answer, or free text (S2.12). */
export function readAnswer(row: Pick<HumanRequestRow, 'question' | 'form'>, written: string): ReadAnswer {
  const form = formOf(row)
  const { choices = [] } = form
  if (isBlank(written)) {
    if (form.default !== undefined) return { ok: true, text: form.default, isChoice: true }
    return { ok: false, error: invalid('The answer is empty', row.question, form) }
  }
  const text = written.trim()
  const chosen =
    choices.find((choice) => choice === text) ??
    choices.find((choice) => choice.toLowerCase() === text.toLowerCase()) ??
    (/^\d{1,4}$/.test(text) ? choices[Number(text) - 1] : undefined)
  if (chosen !== undefined) return { ok: true, text: chosen, isChoice: true }
  if (choices.length === 0 || form.allowOther === true) return { ok: true, text, isChoice: false }
  return { ok: false, error: invalid('This is not one of the choices', row.question, form) }
}

/** Repeats the question with every possible answer. */
function invalid(what: string, question: string, form: AnswerForm): AppError {
  const { choices = [] } = form
  const ways = choices.map((choice, index) => `${index + 1}: ${choice}`).join('; ')
  return new AppError('INVALID_COMMAND', `${what}. The question: ${question}`, {
    hint:
      choices.length === 0
        ? `Answer it in words: ${question}`
        : `Answer with a number or the text of a choice${form.allowOther === true ? ', or in words of your own' : ''}: ${ways}`,
  })
}

interface AnswerCheckOptions {
  models: Models | undefined
  /** Charges a model call to the task; undefined: the cap on spending is reached. */
  ownCall(purpose: 'answer-check', task: string | undefined): ModelCallOptions | undefined
  store: Store
  clock: Clock
  team(): Team
}

/** A person waits no longer than this for the check; then the answer stands. */
const CHECK_MS = 15_000

/** A model may check an answer in words (S2.12). If the model is unavailable, slow or unsure, the answer counts. */
export function createAnswerCheck({ models, ownCall, store, clock, team }: AnswerCheckOptions) {
  return async (row: HumanRequestRow, written: string, person: string): Promise<AppError | undefined> => {
    const model = team().config.tasks.answerCheck
    const answer = readAnswer(row, written)
    if (model === undefined || models === undefined || !answer.ok || answer.isChoice) return undefined
    const call = ownCall(
      'answer-check',
      row.purpose === 'task' ? (JSON.parse(row.context) as { task: string }).task : undefined,
    )
    // The cap on spending is reached: the answer stands unchecked.
    if (call === undefined) return undefined
    const late = new AbortController()
    const cancel = clock.after(CHECK_MS, () => late.abort())
    const { valid, reason, failure } = await checkAnswer(
      models,
      model,
      { question: row.question, answer: answer.text },
      { signal: late.signal, ...call },
    ).finally(cancel)
    const id = formatId('req', row.id)
    if (failure !== undefined) {
      await store.write((tx) =>
        tx.audit({
          type: 'human.answer_unchecked',
          class: 'internal',
          actor: person,
          subject: row.asker,
          text: `${id}: the answer was not checked, and stands: ${failure.message}`,
          data: { request_id: id, model, failure: failure.code },
        }),
      )
    }
    if (valid) return undefined
    return new AppError('INVALID_COMMAND', `${reason} The question: ${row.question}`, {
      hint: 'Rephrase the answer, or accept it as it is with `orc answer --insist`.',
    })
  }
}

export type AnswerCheck = ReturnType<typeof createAnswerCheck>

const AnswerVerdict = z.object({
  valid: z.boolean().describe('Whether the answer answers the question, be it briefly or by declining.'),
  reason: z.string().trim().min(1).max(1000).describe('Why, in one sentence, for the person who answered.'),
})

interface CheckedAnswer {
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

function answerPrompt(question: string, answer: string): Pick<ObjectCall, 'system' | 'prompt'> {
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
function isBlank(text: string): boolean {
  return /^[\s\p{C}\u115f\u1160\u3164\uffa0\u2800]*$/u.test(text)
}
