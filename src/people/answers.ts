import type { Clock } from '../base/clock.ts'
import { AppError } from '../base/errors.ts'
import { formatId } from '../base/ids.ts'
import type { Team } from '../commands/team.ts'
import type { ModelCallOptions, Models } from '../llm/llm.ts'
import type { Store } from '../store/store.ts'
import { checkAnswer, isBlank } from './check-answer.ts'
import type { AnswerForm } from './human-request.ts'
import { formOf } from './request-view.ts'
import type { HumanRequestRow } from './store/human-requests.ts'

export type ReadAnswer = { ok: true; text: string; isChoice: boolean } | { ok: false; error: AppError }

/** Reads a person's answer: a choice by its text or number, the default for an empty answer, or free text (S2.12). */
export function readAnswer(row: Pick<HumanRequestRow, 'question' | 'form'>, said: string): ReadAnswer {
  const form = formOf(row)
  const { choices = [] } = form
  if (isBlank(said)) {
    if (form.default !== undefined) return { ok: true, text: form.default, isChoice: true }
    return { ok: false, error: invalid('The answer is empty', row.question, form) }
  }
  const text = said.trim()
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

export interface AnswerCheckOptions {
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
  return async (row: HumanRequestRow, said: string, person: string): Promise<AppError | undefined> => {
    const model = team().config.tasks.answerCheck
    const answer = readAnswer(row, said)
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
      hint: 'Answer it in other words; or insist (`orc answer --insist`), and it counts as it is.',
    })
  }
}

export type AnswerCheck = ReturnType<typeof createAnswerCheck>
