import type { AuditEntry } from '../audit/entry.ts'
import { OPERATOR, ORCHESTRATOR } from '../base/agent.ts'
import type { Clock } from '../base/clock.ts'
import { findReceipt, keepReceipt } from '../commands/idempotency.ts'
import type { Store } from '../store/store.ts'
import { isEnd, type Task } from '../tasks/task.ts'
import { findTask } from '../tasks/tasks.ts'
import type { RunEvidence } from './run.ts'
import type { MemberTasks } from './workers/workers.ts'

interface ReviewerOptions {
  store: Store
  clock: Clock
  tasks: MemberTasks
}

export interface ReviewOrder {
  /** Run, agent and attempt: a reviewer gets the same work only once. */
  readonly key: string
  readonly reviewer: string
  readonly workspace: string
  readonly instructions: string
  readonly report: string
  readonly evidence: string
  readonly timeoutMs: number
}

export type ReviewVerdict = Pick<RunEvidence, 'outcome' | 'text'>

/** Lets a member of the team judge the work of an agent, as a task. */
export function createReviewer({ store, clock, tasks }: ReviewerOptions) {
  const away = (text: string): ReviewVerdict => ({ outcome: 'unavailable', text })

  async function give({ key, ...review }: ReviewOrder): Promise<string | ReviewVerdict> {
    return await store.write(async (tx) => {
      const earlier = await findReceipt(tx, ORCHESTRATOR, key)
      if (earlier !== undefined) return earlier.receipt
      const given = await tasks.delegate(tx, {
        delegator: OPERATOR,
        agent: review.reviewer,
        text: reviewText(review),
        context: { workspace: review.workspace },
        requiresResponse: true,
        checks: [],
        judge: null,
        timeoutMs: review.timeoutMs,
        maxAttempts: 1,
      })
      if (!given.ok) return away(`${review.reviewer} cannot judge it: ${given.message}`)
      await keepReceipt(tx, ORCHESTRATOR, key, { digest: 'run', receipt: given.task.id })
      return given.task.id
    })
  }

  return async function judge(review: ReviewOrder, signal: AbortSignal): Promise<ReviewVerdict> {
    const { reviewer, timeoutMs } = review
    const task = await give(review)
    if (typeof task !== 'string') return task
    const { promise, resolve, reject } = Promise.withResolvers<ReviewVerdict>()
    const look = async () => {
      const found = await findTask(store, task)
      if (found === undefined) return resolve(away(`${task} is gone`))
      if (isEnd(found.state)) return resolve(verdictOf(found, reviewer))
      // The reviewer gave up. The run decides what follows, so do not leave the question to a person.
      const failure = found.failures.at(-1)
      if (failure === undefined || !found.questions.some(({ kind }) => kind === 'help')) return
      resolve(away(`${reviewer} could not judge it: ${failure.why}`))
      await cancel('it could not be judged')
    }
    const cancel = async (reason: string) => {
      await store.write((tx) => tasks.tell(tx, task, { type: 'cancelled', by: OPERATOR, reason }))
    }
    const stopListening = store.onCommit((entries: readonly AuditEntry[]) => {
      if (entries.some(({ type, data }) => type.startsWith('task.') && data?.task_id === task)) {
        look().catch(reject)
      }
    })
    const stopClock = clock.after(timeoutMs, () => {
      resolve(away(`${reviewer} did not judge it in time`))
      cancel('it was not judged in time').catch(reject)
    })
    // After an abort the task continues, and its key finds it again.
    const broken = () => resolve(away('it was broken off'))
    signal.addEventListener('abort', broken, { once: true })
    try {
      if (signal.aborted) broken()
      await look()
      return await promise
    } finally {
      stopListening()
      stopClock()
      signal.removeEventListener('abort', broken)
    }
  }
}

export type Reviewer = ReturnType<typeof createReviewer>

function reviewText({ workspace, instructions, report, evidence }: Omit<ReviewOrder, 'key'>): string {
  return [
    'Judge whether this work is done as it was asked for. Look at the files themselves; change none of them.',
    `They are in ${workspace}: what was given in inbox/, what was made in outbox/.`,
    '',
    'Report this task as completed, and begin the result with ACCEPTED or with REJECTED, then say why in one to three sentences,',
    'for the one who did the work.',
    '',
    'What was asked for:',
    instructions,
    'What is reported:',
    report,
    ...(evidence === '' ? [] : ['', 'What was found out beside it:', evidence]),
  ].join('\n')
}

const VERDICT = /^[\s*_#>`"']*(accepted|rejected)\b[\s*_:.,`"'–—-]*/i

function verdictOf({ id, state, result, reason }: Task, reviewer: string): ReviewVerdict {
  const away = (text: string): ReviewVerdict => ({ outcome: 'unavailable', text })
  if (state !== 'completed') return away(`${reviewer} did not judge it (${id} is ${state}): ${reason ?? ''}`)
  const said = result ?? ''
  const verdict = VERDICT.exec(said)
  if (verdict === null) return away(`${reviewer} gave no verdict: ${said.slice(0, 300)}`)
  const why = said.slice(verdict[0].length).trim() || said.trim()
  return verdict[1]!.toLowerCase() === 'accepted'
    ? { outcome: 'passed', text: `${reviewer}: ${why}` }
    : { outcome: 'failed', text: `${reviewer} rejected it: ${why}` }
}
