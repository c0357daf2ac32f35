import { afterOutcome, CLEAN } from '../../github/pause.ts'
import { readReport } from '../../github/report.ts'
import { ORCHESTRATOR } from '../../model/agent.ts'
import { formatId } from '../../model/identifier.ts'
import { isEnd, type Task } from '../../model/task.ts'
import { setPaused } from '../../store/agents.ts'
import {
  endWork,
  type GithubWork,
  keepStanding,
  openWork,
  readStanding,
  workAfter,
  workOfTask,
} from '../../store/github.ts'
import { insertHumanRequest } from '../../store/human-requests.ts'
import type { Tx } from '../../store/store.ts'
import { findTask } from '../../store/tasks.ts'
import { askedOf } from './asked.ts'
import type { createDelegating } from './delegating.ts'
import type { createProposals } from './proposals.ts'
import { AUDIT, type GithubParts, isDiscreet } from './settings.ts'

export type Proposals = ReturnType<typeof createProposals>
type Delegating = ReturnType<typeof createDelegating>

const NOTICE_MS = 30 * 24 * 3600_000

/** What comes of a task once it has ended: proposals, the steps after it, and the agent's standing. */
export function createEnding(
  { store, settings, sessions }: GithubParts,
  proposals: Proposals,
  delegating: Delegating,
) {
  async function ended(tx: Tx, work: GithubWork, task: Task): Promise<void> {
    const read = task.state === 'completed' ? readReport(task.result ?? '', askedOf(work, task)) : undefined
    const report = read?.ok === true ? read.report : undefined
    const isSuccess = report !== undefined && report.completion.status !== 'failure'
    if (!(await endWork(tx, work.id, isSuccess ? 'done' : 'failed'))) return
    await note(tx, work.agent, isSuccess)
    const about = { work: work.id, task_id: task.id, role: work.role, repository: work.repository }
    if (report === undefined || !isSuccess) {
      const why =
        report?.completion.error?.errorMessage ??
        (read?.ok === false ? read.problem : task.reason) ??
        task.state
      tx.audit({
        type: AUDIT.failure,
        class: 'public',
        actor: work.agent,
        subject: ORCHESTRATOR,
        // What it was about is public; an agent's words on a failure may quote what is not.
        text: `${threadOf(work)} came to nothing`,
        data: about,
      })
      await tellFailure(tx, work, why)
    } else {
      const { completion } = report
      tx.audit({
        type: AUDIT.success,
        class: 'public',
        actor: work.agent,
        subject: ORCHESTRATOR,
        text: `${threadOf(work)}: ${wordsOf(work, completion.rationale, report.proposals.length + report.byApproval.length)}`,
        ...(completion.confidenceScore === undefined ? {} : { confidence: completion.confidenceScore }),
        data: about,
      })
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
        await proposals.propose(tx, { ...common, proposal, requiresHitl: false })
      }
      for (const proposal of report.byApproval) {
        await proposals.propose(tx, { ...common, proposal, requiresHitl: true })
      }
    }
    await goOn(tx, work, isSuccess)
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
    await notice(tx, agent, text, `orc resume ${agent} lets it go on.`)
  }

  async function tellFailure(tx: Tx, work: GithubWork, why: string) {
    await notice(
      tx,
      work.agent,
      `${work.agent} failed at ${threadOf(work)} in ${work.repository}`,
      why.slice(0, 2000),
    )
    if (work.number === null) return
    const tagged = settings()
      .maintainers.map((login) => `@${login}`)
      .join(' ')
    if (tagged === '') return
    const text = `**${work.agent}** could not do its work here. ${tagged}`
    await proposals.say(tx, `${work.id}/failed`, work.repository, work.number, text)
  }

  async function notice(tx: Tx, agent: string, question: string, reason: string) {
    const request = await insertHumanRequest(tx, {
      kind: 'escalation',
      purpose: 'notice',
      asker: agent,
      question,
      reason,
      action: null,
      action_hash: null,
      context: '{}',
      expires_at: tx.now + NOTICE_MS,
    })
    const id = formatId('req', request)
    tx.audit({
      type: 'human.told',
      class: 'internal',
      actor: ORCHESTRATOR,
      subject: agent,
      text: `${id}: ${question}`,
      data: { request_id: id },
    })
  }

  /** The steps that waited for this one begin, or never will. */
  async function goOn(tx: Tx, work: GithubWork, isSuccess: boolean) {
    for (const next of await workAfter(tx, work.delivery, work.role)) {
      const fits = next.needs === 'any' || (next.needs === 'success') === isSuccess
      if (fits) await delegating.begin(tx, next)
      else if (await endWork(tx, next.id, 'skipped')) await goOn(tx, next, false)
    }
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

function wordsOf({ role }: GithubWork, rationale: string, proposals: number): string {
  if (isDiscreet(role)) return 'looked at'
  const count = proposals === 0 ? 'nothing proposed' : `${proposals} proposed`
  return `${count}. ${rationale}`
}

function threadOf({ number, repository }: GithubWork): string {
  return number === null ? repository : `#${number}`
}
