import { ORCHESTRATOR } from '../../base/agent.ts'
import type { Clock } from '../../base/clock.ts'
import type { ModelCallOptions, Models } from '../../llm/llm.ts'
import type { Store } from '../../store/store.ts'
import type { TaskEvent } from '../core/event.ts'
import { findTask } from '../store/tasks.ts'
import { judgeReport } from './judge.ts'

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
