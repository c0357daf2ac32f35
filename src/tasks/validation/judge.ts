/** Judges: which model or agent judges a claim, and how a model is asked. Runs use them too. */
import { z } from 'zod'
import { ORCHESTRATOR } from '../../base/agent.ts'
import type { Clock } from '../../base/clock.ts'
import { AppError } from '../../base/errors.ts'
import { excerpt } from '../../base/excerpt.ts'
import { failure, type Result } from '../../base/result.ts'
import type { Config } from '../../config/config.ts'
import { FENCE_RULE, fence } from '../../llm/fence-untrusted-text.ts'
import type { ModelCallOptions, ModelFailure, Models, ObjectCall } from '../../llm/llm.ts'
import type { Store } from '../../store/store.ts'
import type { TaskEvent } from '../core/events-and-effects.ts'
import { findTask } from '../store.ts'
import type { Judge } from '../task.ts'

interface KnownJudges {
  config: Pick<Config, 'models'>
  /** Finds an agent by its name in any case. */
  resolve(name: string): string | undefined
}

/** Finds the judge that a delegation names, if it does: a model of orc.yaml, or an agent in any case. */
export function findJudge(
  { config, resolve }: KnownJudges,
  name: string | undefined,
): Result<Judge | undefined> {
  if (name === undefined) return { ok: true, value: undefined }
  const agent = resolve(name)
  const isModel = Object.hasOwn(config.models, name)
  if (agent !== undefined && isModel) {
    return failure(
      new AppError('INVALID_COMMAND', `"${agent}" is both a model and an agent`, {
        hint: 'Rename one of them in orc.yaml.',
      }),
    )
  }
  if (agent !== undefined) return { ok: true, value: { kind: 'agent', name: agent } }
  if (isModel) return { ok: true, value: { kind: 'model', name } }
  return failure(
    new AppError('NOT_FOUND', `There is no model or agent "${name.slice(0, 100)}" to judge the task`, {
      hint: 'Name one of "models" or "agents" in orc.yaml, or omit "judge".',
    }),
  )
}

export function isSameJudge(one: Judge, other: Judge | undefined): boolean {
  return one.kind === other?.kind && one.name === other.name
}

/** Answer of the model (S2.11). */
const Judgement = z.object({
  completed: z.boolean().describe('Whether the report completes the task as it was given.'),
  reason: z
    .string()
    .trim()
    .min(1)
    .max(2000)
    .describe('Why, in one to three sentences, for the agent that did the work.'),
})
type Judgement = z.output<typeof Judgement>

interface JudgedReport {
  readonly task: string
  readonly report: string
  /** Results of checks, changed files. */
  readonly evidence?: string
}

const MAX_QUOTED = { task: 20_000, report: 40_000, evidence: 20_000 }

const SYSTEM = [
  'You decide whether a report shows that a task was completed. A claim alone proves nothing: compare what the task asked',
  'for with the report and the evidence. Partial work is not completed work. If the evidence contradicts the report,',
  'believe the evidence.',
  FENCE_RULE,
].join('\n')

function judgePrompt({ task, report, evidence }: JudgedReport): Pick<ObjectCall, 'system' | 'prompt'> {
  const parts = [
    'The task as it was given:',
    fence('task', excerpt(task, MAX_QUOTED.task)),
    'The report of the agent:',
    fence('report', excerpt(report, MAX_QUOTED.report)),
    ...(evidence === undefined || evidence.trim() === ''
      ? ['There is no evidence besides the report.']
      : ['The evidence besides the report:', fence('evidence', excerpt(evidence, MAX_QUOTED.evidence))]),
    'Does the report complete the task?',
  ]
  return { system: SYSTEM, prompt: parts.join('\n\n') }
}

/** Asks a model whether a report completes its task (S2.11). */
export async function judgeReport(
  models: Models,
  model: string,
  claim: JudgedReport,
  options: ModelCallOptions = {},
): Promise<({ ok: true } & Judgement) | ModelFailure> {
  const answer = await models.generateObject({
    model,
    schema: Judgement,
    purpose: 'judge',
    ...judgePrompt(claim),
    ...options,
  })
  return answer.ok ? { ok: true, ...answer.value } : answer
}

interface JudgeRunnerOptions {
  store: Store
  clock: Clock
  hasModel(name: string): boolean
  models: Models | undefined
  /** Books the cost of a judgement on the task. Undefined if the spending limit is reached. */
  meterCall(task: string): ModelCallOptions | undefined
}

interface ClaimJudgement {
  task: string
  claim: number
  /** A name from `models`. */
  judge: string
  text: string
  result: string
}

/** Has models judge claims (S2.11). Returns an event for the task, even if the judge fails. */
export function createJudgeRunner({ store, clock, hasModel, models, meterCall }: JudgeRunnerOptions) {
  return async function judge(claim: ClaimJudgement, signal: AbortSignal): Promise<TaskEvent> {
    const { task: id, claim: number, judge: model, text, result } = claim
    const gaveUp = (why: string) => ({ type: 'validation_gave_up', claim: number, why }) as const
    if (models === undefined || !hasModel(model)) {
      return gaveUp(`orc.yaml no longer has a model "${model}"`)
    }
    const call = meterCall(id)
    if (call === undefined) return gaveUp('the service has reached its spending limit (limits.spend)')
    const task = await findTask(store, id)
    const found = task?.evidence.filter((one) => one.claim === number && one.step === 'checks') ?? []
    const evidence = found.map((one) => `${one.outcome}: ${one.text}`).join('\n')
    const deadline = new AbortController()
    // The task's stored timer ends the wait; this one ends the request to the model.
    const left = task?.due?.kind === 'validation' ? task.due.at - clock.now() : 0
    const cancel = clock.after(Math.max(0, left), () => deadline.abort())
    try {
      const judged = await judgeReport(
        models,
        model,
        { task: text, report: result, evidence },
        { ...call, signal: AbortSignal.any([signal, deadline.signal]) },
      )
      if (deadline.signal.aborted) return gaveUp(`the judge ${model} did not answer in time`)
      if (!judged.ok) return gaveUp(`the judge ${model} failed (${judged.code}): ${judged.message}`)
      const { completed, reason } = judged
      return { type: 'judged', by: ORCHESTRATOR, claim: number, completed, reason }
    } finally {
      cancel()
    }
  }
}

export type JudgeRunner = ReturnType<typeof createJudgeRunner>
