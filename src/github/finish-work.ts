import { setPaused } from '../agents/agents.ts'
import { ORCHESTRATOR } from '../base/agent.ts'
import { DEFAULT_RETRIES, pauseAfter } from '../base/backoff.ts'
import { formatId } from '../base/ids.ts'
import { notifyPeople } from '../people/people.ts'
import type { Tx } from '../store/store.ts'
import { setTimer } from '../store/timers.ts'
import { isEnd, type Task } from '../tasks/task.ts'
import { findTask } from '../tasks/tasks.ts'
import { escalateFailedWork } from './comments.ts'
import { afterOutcome, NO_FAILURES } from './core/policy.ts'
import { readReport, type TaskError, taskError } from './core/report.ts'
import { type Delegation, reportContextOf } from './delegate-work.ts'
import { AUDIT, fromAgent, type GithubDependencies, toAgent } from './dependencies.ts'
import type { Proposals } from './proposals.ts'
import { isConfidentialRole } from './roles.ts'
import {
  endWork,
  findWork,
  type GithubWork,
  openWork,
  putOffWork,
  readFailureStreak,
  storeFailureStreak,
  workOfTask,
} from './store.ts'

const RETRY = 'github_retry'

/** Processes ended tasks: reads the report, handles its proposals, starts the next steps and counts failures. */
export function createFinishing(deps: GithubDependencies, proposals: Proposals, delegation: Delegation) {
  const { store, sessions, timers, redact } = deps

  timers.on(RETRY, async (tx, id) => {
    const work = await findWork(tx, id)
    if (work?.state === 'waiting' && work.task === null) await delegation.start(tx, work)
  })

  async function finishWork(tx: Tx, work: GithubWork, task: Task): Promise<void> {
    const read =
      task.state === 'completed' ? readReport(task.result ?? '', reportContextOf(work, task)) : undefined
    const report = read?.ok === true ? read.value : undefined
    const isSuccess = report !== undefined && report.completion.status !== 'failure'
    const about = { work: work.id, task_id: task.id, role: work.role, repository: work.repository }
    if (report === undefined || !isSuccess) {
      const error = taskError({
        task,
        completion: report?.completion,
        problem: read?.ok === false ? read.error : undefined,
        retries: work.attempts,
        at: new Date(tx.now).toISOString(),
      })
      const known = isConfidentialRole(work.role)
        ? {
            ...error,
            error_message: 'The text of the agent is not stored.',
            suggested_action: 'A moderator can look at the thread.',
          }
        : error
      if (error.is_recoverable && work.attempts < DEFAULT_RETRIES) return await retry(tx, work, known)
      if (!(await endWork(tx, work.id, 'failed'))) return
      await countOutcome(tx, work.agent, false)
      // The type of the failure is public; the agent's message is not, because it may quote private text.
      const { error_message: _, ...published } = known
      tx.audit({
        ...fromAgent(work.agent),
        type: AUDIT.failure,
        text: `${threadOf(work)} failed: ${error.error_type}${error.retry_count === 0 ? '' : ` after ${error.retry_count} retries`}`,
        data: { ...about, error: published },
      })
      await escalateFailedWork(deps, tx, work, known)
    } else {
      if (!(await endWork(tx, work.id, 'done'))) return
      await countOutcome(tx, work.agent, true)
      const { completion } = report
      const proposed = report.proposals.length
      tx.audit({
        ...fromAgent(work.agent),
        type: AUDIT.success,
        text: `${threadOf(work)}: ${publicSummary(work, completion.rationale, proposed)}`,
        // Reports without proposals must look alike, or a conduct flag could be guessed (S3.15).
        ...(completion.confidenceScore === undefined || proposed === 0
          ? {}
          : { confidence: completion.confidenceScore }),
        data: about,
      })
      if (completion.requiresHumanReview && proposed === 0) {
        const why = completion.humanReviewReason ?? completion.rationale
        const question = `${work.agent} wants a person to look at ${work.repository}${work.number === null ? '' : `#${work.number}`}`
        await notifyPeople(tx, { agent: work.agent, question, reason: redact(why).slice(0, 2000) })
      }
      for (const refused of report.refused) {
        tx.audit({
          ...toAgent(work.agent),
          type: AUDIT.logged,
          text: `Refused ${refused.type.slice(0, 60)}: ${refused.why}`,
          data: about,
        })
      }
      const { rationale, requiresHumanReview: wantsReview } = completion
      for (const proposal of report.proposals)
        await proposals.propose(tx, { work, proposal, rationale, wantsReview })
    }
    await delegation.continueAfter(tx, work, isSuccess)
  }

  async function countOutcome(tx: Tx, agent: string, isSuccess: boolean) {
    const before = await readFailureStreak(tx, agent)
    const after = afterOutcome(before, isSuccess ? 'success' : 'failure')
    if (after.failures !== before.failures) storeFailureStreak(tx, agent, after)
    if (!after.isSuspended || before.isSuspended) return
    const text = `${agent} failed ${after.failures} times in a row and gets no more GitHub work`
    tx.audit({ ...toAgent(agent), type: AUDIT.logged, text })
    setPaused(tx, agent, true)
    tx.afterCommit(() => sessions.setPaused(agent, true))
    await notifyPeople(tx, { agent, question: text, reason: `Resume it with: orc agent resume ${agent}` })
  }

  /** Delegates the work again after 1, 2 and 4 s (S3.20, C7). Repeated proposals have the same key, so they count once. */
  async function retry(tx: Tx, work: GithubWork, error: TaskError) {
    const due = tx.now + pauseAfter(work.attempts + 1)
    if (!(await putOffWork(tx, work.id))) return
    setTimer(tx, RETRY, work.id, due)
    tx.afterCommit(() => timers.setFor(due))
    tx.audit({
      type: AUDIT.logged,
      class: 'internal',
      actor: ORCHESTRATOR,
      subject: work.agent,
      text: `${threadOf(work)} is retried (${work.attempts + 1} of ${DEFAULT_RETRIES}): ${error.error_type}: ${redact(error.error_message).slice(0, 300)}`,
      data: { work: work.id, repository: work.repository },
    })
  }

  async function finish(key: number): Promise<void> {
    await store.write(async (tx) => {
      const work = await workOfTask(tx, key)
      const task = work === undefined ? undefined : await findTask(tx, formatId('task', key))
      if (work !== undefined && task !== undefined && isEnd(task.state)) await finishWork(tx, work, task)
    })
  }

  return {
    finish,
    /** A person resumed the agent. */
    async clearFailures(agent: string): Promise<void> {
      await store.write(async (tx) => {
        if ((await readFailureStreak(tx, agent)).isSuspended) storeFailureStreak(tx, agent, NO_FAILURES)
      })
    },
    /** Finishes tasks that ended before this start of the service. */
    async catchUp(): Promise<void> {
      for (const { task } of await openWork(store)) if (task !== null) await finish(task)
    },
  }
}

/** Leaves out the rationale of a report without proposals: it could be about a person. */
function publicSummary({ role }: GithubWork, rationale: string, proposals: number): string {
  if (isConfidentialRole(role)) return 'checked'
  return proposals === 0 ? 'nothing proposed' : `${proposals} proposed. ${rationale}`
}

function threadOf({ number, repository }: GithubWork): string {
  return number === null ? repository : `#${number}`
}
