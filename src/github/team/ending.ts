import { setPaused } from '../../agents/agents.ts'
import { ORCHESTRATOR } from '../../base/agent.ts'
import { DEFAULT_RETRIES, pauseAfter } from '../../base/backoff.ts'
import { formatId } from '../../base/ids.ts'
import { tellPeople } from '../../people/notices.ts'
import type { Tx } from '../../store/store.ts'
import { setTimer } from '../../store/timer-rows.ts'
import { isEnd, type Task } from '../../tasks/task.ts'
import { findTask } from '../../tasks/tasks.ts'
import { afterOutcome, CLEAN } from '../core/pause.ts'
import { readReport } from '../core/report.ts'
import { isConfidentialRole } from '../core/roles.ts'
import { type TaskError, taskError } from '../core/task-error.ts'
import { keepStanding, readStanding } from '../store/health.ts'
import { endWork, findWork, type GithubWork, openWork, putOffWork, workOfTask } from '../store/work.ts'
import { askedOf } from './asked.ts'
import { type createDelegating, wantsPeople } from './delegating.ts'
import type { Escalating } from './escalating.ts'
import type { Proposals } from './proposals.ts'
import { AUDIT, type GithubParts } from './settings.ts'

type Delegating = ReturnType<typeof createDelegating>

const RETRY = 'github_retry'

/** What comes of a task once it has ended: proposals, the steps after it, and the agent's standing. */
export function createEnding(
  { store, sessions, timers, redact }: GithubParts,
  proposals: Proposals,
  delegating: Delegating,
  escalating: Escalating,
) {
  timers.on(RETRY, async (tx, id) => {
    const work = await findWork(tx, id)
    if (work?.state === 'waiting' && work.task === null) await delegating.begin(tx, work)
  })

  async function ended(tx: Tx, work: GithubWork, task: Task): Promise<void> {
    const read = task.state === 'completed' ? readReport(task.result ?? '', askedOf(work, task)) : undefined
    const report = read?.ok === true ? read.report : undefined
    const isSuccess = report !== undefined && report.completion.status !== 'failure'
    const about = { work: work.id, task_id: task.id, role: work.role, repository: work.repository }
    if (report === undefined || !isSuccess) {
      const error = taskError({
        task,
        completion: report?.completion,
        problem: read?.ok === false ? read.problem : undefined,
        retries: work.attempts,
        at: new Date(tx.now).toISOString(),
      })
      const known = isConfidentialRole(work.role)
        ? {
            ...error,
            error_message: 'Its words are not kept.',
            suggested_action: 'A moderator can look at the thread.',
          }
        : error
      if (error.is_recoverable && work.attempts < DEFAULT_RETRIES) return await retry(tx, work, known)
      if (!(await endWork(tx, work.id, 'failed'))) return
      await note(tx, work.agent, false)
      // What it was about is public; an agent's words on a failure may quote what is not.
      const { error_message: _, ...told } = known
      tx.audit({
        type: AUDIT.failure,
        class: 'public',
        actor: work.agent,
        subject: ORCHESTRATOR,
        text: `${threadOf(work)} came to nothing: ${error.error_type}${error.retry_count === 0 ? '' : ` after ${error.retry_count} retries`}`,
        data: { ...about, error: told },
      })
      await escalating.failed(tx, work, known)
    } else {
      if (!(await endWork(tx, work.id, 'done'))) return
      await note(tx, work.agent, true)
      const { completion } = report
      const proposed = report.proposals.length + report.byApproval.length
      tx.audit({
        type: AUDIT.success,
        class: 'public',
        actor: work.agent,
        subject: ORCHESTRATOR,
        text: `${threadOf(work)}: ${wordsOf(work, completion.rationale, proposed)}`,
        // Of those that propose nothing, one looks like the other (S3.15).
        ...(completion.confidenceScore === undefined || proposed === 0
          ? {}
          : { confidence: completion.confidenceScore }),
        data: about,
      })
      if (completion.requiresHumanReview && proposed === 0) {
        const why = completion.humanReviewReason ?? completion.rationale
        const question = `${work.agent} wants a person to look at ${work.repository}${work.number === null ? '' : `#${work.number}`}`
        await tellPeople(tx, { agent: work.agent, question, reason: redact(why).slice(0, 2000) })
      }
      for (const refused of report.refused) {
        tx.audit({
          type: AUDIT.logged,
          class: 'public',
          actor: ORCHESTRATOR,
          subject: work.agent,
          text: `Refused ${refused.type.slice(0, 60)}: ${refused.why}`,
          data: about,
        })
      }
      const common = { work, rationale: completion.rationale, wantsReview: completion.requiresHumanReview }
      for (const proposal of report.proposals) {
        await proposals.propose(tx, { ...common, proposal, requiresHitl: wantsPeople(work) })
      }
      for (const proposal of report.byApproval) {
        await proposals.propose(tx, { ...common, proposal, requiresHitl: true })
      }
    }
    await delegating.goOn(tx, work, isSuccess)
  }

  async function note(tx: Tx, agent: string, isSuccess: boolean) {
    const before = await readStanding(tx, agent)
    const after = afterOutcome(before, isSuccess ? 'success' : 'failure')
    if (after.failures !== before.failures || after.halted !== before.halted)
      await keepStanding(tx, agent, after)
    if (!after.halted || before.halted) return
    const text = `${agent} failed ${after.failures} times in a row and gets no more work from GitHub`
    tx.audit({ type: AUDIT.logged, class: 'public', actor: ORCHESTRATOR, subject: agent, text })
    await setPaused(tx, agent, true)
    tx.afterCommit(() => sessions.setPaused(agent, true))
    await tellPeople(tx, { agent, question: text, reason: `orc resume ${agent} lets it go on.` })
  }

  /** S3.20, C7: after 1, 2 and 4 s it gets its task once more; what it proposes then is still done once. */
  async function retry(tx: Tx, work: GithubWork, error: TaskError) {
    const due = tx.now + pauseAfter(work.attempts + 1)
    if (!(await putOffWork(tx, work.id))) return
    await setTimer(tx, RETRY, work.id, due)
    tx.afterCommit(() => timers.setFor(due))
    tx.audit({
      type: AUDIT.logged,
      class: 'internal',
      actor: ORCHESTRATOR,
      subject: work.agent,
      text: `${threadOf(work)} is tried again (${work.attempts + 1} of ${DEFAULT_RETRIES}): ${error.error_type}: ${redact(error.error_message).slice(0, 300)}`,
      data: { work: work.id, repository: work.repository },
    })
  }

  async function look(key: number): Promise<void> {
    await store.write(async (tx) => {
      const work = await workOfTask(tx, key)
      const task = work === undefined ? undefined : await findTask(tx, formatId('task', key))
      if (work !== undefined && task !== undefined && isEnd(task.state)) await ended(tx, work, task)
    })
  }

  return {
    look,
    /** A person lets the agent go on. */
    async forgive(agent: string): Promise<void> {
      await store.write(async (tx) => {
        if ((await readStanding(tx, agent)).halted) await keepStanding(tx, agent, CLEAN)
      })
    },
    /** After a start: tasks that ended while nobody listened. */
    async catchUp(): Promise<void> {
      for (const { task } of await openWork(store)) if (task !== null) await look(task)
    },
  }
}

/** Why nothing is proposed is not said in public: it could be about a person. */
function wordsOf({ role }: GithubWork, rationale: string, proposals: number): string {
  if (isConfidentialRole(role)) return 'looked at'
  return proposals === 0 ? 'nothing proposed' : `${proposals} proposed. ${rationale}`
}

function threadOf({ number, repository }: GithubWork): string {
  return number === null ? repository : `#${number}`
}
