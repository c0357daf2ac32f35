import { z } from 'zod'
import type { Clock } from '../base/clock.ts'
import { AppError } from '../base/errors.ts'
import { excerpt } from '../base/excerpt.ts'
import { formatId } from '../base/ids.ts'
import { failure, type Result } from '../base/result.ts'
import type { Team } from '../commands/team.ts'
import { FENCE_RULE, fence } from '../llm/fence-untrusted-text.ts'
import type { ModelCallOptions, Models, ObjectCall } from '../llm/llm.ts'
import type { Store } from '../store/store.ts'
import type { AnswerForm } from './human-request.ts'
import type { HumanRequestRow } from './people.ts'
import { formOf } from './request-view.ts'

interface ReadAnswer {
  text: string
  isChoice: boolean
}

/** Reads a person's answer: a choice by its text or number, the default for an empty answer, or free text (S2.12). */
export function readAnswer(
  row: Pick<HumanRequestRow, 'question' | 'form'>,
  written: string,
): Result<ReadAnswer> {
  const form = formOf(row)
  const { choices = [] } = form
  if (isBlank(written)) {
    if (form.default !== undefined) return { ok: true, value: { text: form.default, isChoice: true } }
    return failure(invalid('The answer is empty', row.question, form))
  }
  const text = written.trim()
  const chosen =
    choices.find((choice) => choice === text) ??
    choices.find((choice) => choice.toLowerCase() === text.toLowerCase()) ??
    (/^\d{1,4}$/.test(text) ? choices[Number(text) - 1] : undefined)
  if (chosen !== undefined) return { ok: true, value: { text: chosen, isChoice: true } }
  if (choices.length === 0 || form.allowOther === true) return { ok: true, value: { text, isChoice: false } }
  return failure(invalid('This is not one of the choices', row.question, form))
}

/** Repeats the question with every possible answer. */
function invalid(what: string, question: string, form: AnswerForm): AppError {
  const { choices = [] } = form
  const ways = choices.map((choice, index) => `${index + 1}: ${choice}`).join('; ')
  return new AppError('INVALID_COMMAND', `${what}. The question: ${question}`, {
    hint:
      choices.length === 0
        ? `Write an answer to: ${question}`
        : `Answer with a number or the text of a choice${form.allowOther === true ? ', or in your own words' : ''}: ${ways}`,
  })
}

interface AnswerCheckOptions {
  models: Models | undefined
  /** Books a model call on the task; returns undefined at the spending cap. */
  ownCall(purpose: 'answer-check', task: string | undefined): ModelCallOptions | undefined
  store: Store
  clock: Clock
  team(): Team
}

/** After this time the answer counts unchecked, because a person is waiting. */
const CHECK_MS = 15_000

/** Lets a model check a free-text answer (S2.12). The answer counts if the model is unavailable or slow. */
export function createAnswerCheck({ models, ownCall, store, clock, team }: AnswerCheckOptions) {
  return async (row: HumanRequestRow, written: string, person: string): Promise<AppError | undefined> => {
    const model = team().config.tasks.answerCheck
    const answer = readAnswer(row, written)
    if (model === undefined || models === undefined || !answer.ok || answer.value.isChoice) return undefined
    const call = ownCall(
      'answer-check',
      row.purpose === 'task' ? (JSON.parse(row.context) as { task: string }).task : undefined,
    )
    // At the spending cap, the answer counts unchecked.
    if (call === undefined) return undefined
    const late = new AbortController()
    const cancel = clock.after(CHECK_MS, () => late.abort())
    const verdict = await models
      .generateObject({
        model,
        schema: AnswerVerdict,
        purpose: 'answer-check',
        ...answerPrompt(row.question, answer.value.text),
        signal: late.signal,
        ...call,
      })
      .finally(cancel)
    if (!verdict.ok) {
      const id = formatId('req', row.id)
      await store.write((tx) =>
        tx.audit({
          type: 'human.answer_unchecked',
          class: 'internal',
          actor: person,
          subject: row.asker,
          text: `${id}: the answer could not be checked and counts: ${verdict.message}`,
          data: { request_id: id, model, failure: verdict.code },
        }),
      )
      return undefined
    }
    const { valid, reason } = verdict.value
    if (valid) return undefined
    return new AppError('INVALID_COMMAND', `${reason} The question: ${row.question}`, {
      hint: 'Rephrase the answer, or accept it as it is with `orc answer --insist`.',
    })
  }
}

export type AnswerCheck = ReturnType<typeof createAnswerCheck>

const AnswerVerdict = z.object({
  valid: z.boolean().describe('Whether the text answers the question; a short answer or a refusal counts.'),
  reason: z.string().trim().min(1).max(1000).describe('Why, in one sentence, for the person who answered.'),
})

const MAX_LENGTH = 20_000

const SYSTEM = [
  "You decide whether a person's text answers the question they were asked. Be lenient: a short answer, a choice,",
  '"I do not know" and a refusal are answers. Only a text that has nothing to do with the question is invalid.',
  FENCE_RULE,
].join('\n')

function answerPrompt(question: string, answer: string): Pick<ObjectCall, 'system' | 'prompt'> {
  const prompt = [
    'The question:',
    fence('question', excerpt(question, MAX_LENGTH)),
    'The answer:',
    fence('answer', excerpt(answer, MAX_LENGTH)),
    'Does it answer the question?',
  ].join('\n\n')
  return { system: SYSTEM, prompt }
}

/** Whether the text is only white space, control and invisible characters. */
function isBlank(text: string): boolean {
  return /^[\s\p{C}\u115f\u1160\u3164\uffa0\u2800]*$/u.test(text)
}
