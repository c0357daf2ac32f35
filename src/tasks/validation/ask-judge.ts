import type { Meter } from '../../agents/usage.ts'
import { ORCHESTRATOR } from '../../base/agent.ts'
import type { Clock } from '../../base/clock.ts'
import type { Team } from '../../commands/team.ts'
import type { Models } from '../../llm/llm.ts'
import type { Store } from '../../store/store.ts'
import type { Happening } from '../core/event.ts'
import { findTask } from '../store/tasks.ts'
import { judgeReport } from './judge-prompt.ts'

export interface JudgingOptions {
  store: Store
  clock: Clock
  team(): Team
  models: Models | undefined
  meter: Pick<Meter, 'ownCall'>
}

interface Question {
  task: string
  claim: number
  /** A name from `models`. */
  judge: string
  text: string
  result: string
}

/** Has models judge claims (S2.11). What comes of it is an event for the task, whatever goes wrong. */
export function createJudging({ store, clock, team, models, meter }: JudgingOptions) {
  return async function judge(question: Question, signal: AbortSignal): Promise<Happening> {
    const { task: id, claim, judge: model, text, result } = question
    const gaveUp = (why: string) => ({ type: 'validation_gave_up', claim, why }) as const
    if (models === undefined || !Object.hasOwn(team().config.models, model)) {
      return gaveUp(`orc.yaml has no model "${model}" any more`)
    }
    const call = meter.ownCall('judge', id)
    if (call === undefined) return gaveUp('the service may not spend more (limits.spend)')
    const task = await findTask(store, id)
    const found = task?.evidence.filter((one) => one.claim === claim && one.step === 'checks') ?? []
    const evidence = found.map((one) => `${one.outcome}: ${one.text}`).join('\n')
    const deadline = new AbortController()
    // The stored timer ends the wait at the same time; this ends the request.
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
      return { type: 'judged', by: ORCHESTRATOR, claim, completed, reason }
    } finally {
      cancel()
    }
  }
}

export type Judging = ReturnType<typeof createJudging>
