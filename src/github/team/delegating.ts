import { OPERATOR, ORCHESTRATOR } from '../../base/agent.ts'
import { parseId } from '../../base/ids.ts'
import { FENCE_RULE, fence } from '../../llm/fence.ts'
import type { Tx } from '../../store/store.ts'
import { DEFAULT_TASK_TIMEOUT_MS } from '../../tasks/task.ts'
import { briefing, fitDelegation } from '../core/briefing.ts'
import type { GitHubEvent } from '../core/event.ts'
import { readStanding } from '../store/health.ts'
import { beginWork, endWork, type GithubWork, insertWork, workAfter } from '../store/work.ts'
import type { RouteStep } from '../terms.ts'
import { encodeTeamMessage, readTeamMessage, type TaskDelegation } from '../wire/codec.ts'
import type { WorkContext } from './asked.ts'
import { type Gathered, isoTime } from './gather.ts'
import { AUDIT, agentFor, type GithubParts, isForPeople } from './settings.ts'

const FENCING = { rule: FENCE_RULE, fence }
/** C20, with room for what the codec adds. */
const MOST_BYTES = 98_000
const LONGEST = { title: 1000, body: 40_000 }

const WHAT: Readonly<Record<string, string>> = {
  triage: 'Triage',
  concierge: 'Welcome the author of',
  lifecycle: 'Look after',
  scribe: 'Look at the documentation for',
  community: 'Look at what was said in',
}

export interface GivenStep extends RouteStep {
  /** What somebody asked for. */
  readonly task?: string
  /** The event is that role's by its route as well: both are to be done. */
  readonly isRouted?: boolean
}

/** Turns steps into tasks of agents, each step of each event once. */
export function createDelegating({ tasks, team, settings, redact }: GithubParts, delegated: () => void) {
  function delegationOf(
    work: string,
    role: string,
    event: GitHubEvent,
    gathered: Gathered,
    tx: Tx,
    { description, requiresHitl }: { description: string; requiresHitl: boolean },
  ) {
    const at = new Date(tx.now).toISOString()
    const { subject, comment, repository = 'unknown/unknown' } = event
    // Cleaned as a whole: of a secret that a cut goes through, the first half would stay.
    const clean = (text: string, most: number) => redact(text).slice(0, most).toWellFormed()
    const body = comment?.body || subject?.body || ''
    const created = isoTime(subject?.createdAt)
    const updated = isoTime(subject?.updatedAt)
    const triggered = new Date(event.receivedAt ?? tx.now).toISOString()
    const delegation: TaskDelegation = {
      type: 'task_delegation',
      id: work,
      at,
      from: ORCHESTRATOR,
      to: role,
      eventContext: {
        eventType: eventType(event),
        eventId: event.id,
        repository,
        triggerTimestamp: triggered,
      },
      task: {
        description,
        priority: 'medium',
        timeoutSeconds: Math.max(
          1,
          Math.round((team().config.tasks.timeoutMs ?? DEFAULT_TASK_TIMEOUT_MS) / 1000),
        ),
        requiresHitl,
        confidenceThreshold: settings().confidence,
      },
      context: {
        ...(subject?.kind === 'issue' ? { issueNumber: subject.number } : {}),
        ...(subject?.kind === 'pull_request' ? { prNumber: subject.number } : {}),
        ...(comment === undefined ? {} : { commentId: comment.id }),
        ...(gathered.user === undefined ? {} : { user: gathered.user }),
        ...(subject === undefined
          ? {}
          : {
              content: {
                title: clean(subject.title, LONGEST.title),
                body: clean(body, LONGEST.body),
                labels: subject.labels.slice(0, 100),
                state: subject.state,
                ...(created === undefined ? {} : { createdAt: created }),
                ...(updated === undefined ? {} : { updatedAt: updated }),
                commentsCount: subject.comments,
              },
            }),
        additionalContext: {
          ...gathered.additional,
          excerpts: gathered.additional.excerpts?.map(({ source, text }) => ({
            source: clean(source, 200),
            text: clean(text, 2000),
          })),
        },
      },
      repositoryContext: gathered.repository,
    }
    return fitDelegation(delegation, MOST_BYTES)
  }

  /** The steps that waited for this one begin, or never will. */
  async function goOn(tx: Tx, work: GithubWork, isSuccess: boolean): Promise<void> {
    for (const next of await workAfter(tx, work.delivery, work.role)) {
      const fits = next.needs === 'any' || (next.needs === 'success') === isSuccess
      if (fits) await begin(tx, next)
      else if (await endWork(tx, next.id, 'skipped')) await goOn(tx, next, false)
    }
  }

  async function begin(tx: Tx, work: GithubWork): Promise<void> {
    const { agent, role, number } = work
    const read = readTeamMessage(JSON.parse(work.delegation))
    if (!read.ok || read.message.type !== 'task_delegation') throw new Error(`${work.id} holds no delegation`)
    const delegation = read.message
    const context: WorkContext = {
      github_work: work.id,
      role,
      repository: work.repository,
      ...(number === null ? {} : { number }),
    }
    // Room for what the service adds around it.
    const most = team().config.limits.messageBytes - 2000
    const begun = await tasks.delegate(tx, {
      delegator: OPERATOR,
      agent,
      text: briefing(role, delegation, FENCING, most),
      context: { ...context },
      requiresResponse: true,
      checks: [],
      judge: null,
    })
    const about = { work: work.id, role, repository: work.repository, ...(number === null ? {} : { number }) }
    if (!begun.ok) {
      await endWork(tx, work.id, 'failed')
      tx.audit({
        type: AUDIT.failure,
        class: 'public',
        actor: ORCHESTRATOR,
        subject: agent,
        text: `${delegation.task.description} could not be given to ${agent}: ${begun.message}`,
        data: about,
      })
      await goOn(tx, work, false)
      return
    }
    await beginWork(tx, work.id, parseId('task', begun.task.id)!)
    tx.afterCommit(delegated)
    tx.audit({
      type: AUDIT.task,
      class: 'public',
      actor: ORCHESTRATOR,
      subject: agent,
      text: delegation.task.description,
      data: { ...about, task_id: begun.task.id },
    })
  }

  return {
    begin,
    goOn,
    /** Steps that wait for another are stored, and begin when that one has ended. */
    async give(tx: Tx, event: GitHubEvent, gathered: Gathered, steps: readonly GivenStep[]) {
      const ready: GithubWork[] = []
      const left: GithubWork[] = []
      for (const { to: role, after, on, task, isRouted = false, requiresHitl = false } of steps) {
        const agent = agentFor(team(), settings(), role)
        if (agent === undefined) continue
        const { halted } = await readStanding(tx, agent)
        if (halted) {
          tx.audit({
            type: AUDIT.logged,
            class: 'public',
            actor: ORCHESTRATOR,
            subject: agent,
            text: `${agent} is halted after too many failures; ${thread(event)} is left to people`,
            data: {
              delivery: event.id,
              ...(event.repository === undefined ? {} : { repository: event.repository }),
            },
          })
        }
        const id = `${event.id}/${role}`
        const asked = {
          description: describeStep(role, event, task, isRouted),
          requiresHitl: requiresHitl || isForPeople(team(), settings(), role, []),
        }
        const isBound = after !== undefined && agentFor(team(), settings(), after) !== undefined
        const work: GithubWork = {
          id,
          delivery: event.id,
          role,
          agent,
          repository: event.repository ?? 'unknown/unknown',
          number: event.subject?.number ?? null,
          state: 'waiting',
          task: null,
          after: isBound ? after : null,
          needs: on,
          attempts: 0,
          delegation: encodeTeamMessage(delegationOf(id, role, event, gathered, tx, asked)),
        }
        await insertWork(tx, work)
        if (halted) left.push(work)
        else if (!isBound) ready.push(work)
      }
      // All of them are there before one begins or is left out: whoever waits for it hears of it.
      for (const work of left) await endWork(tx, work.id, 'skipped')
      for (const work of ready) await begin(tx, work)
      for (const work of left) await goOn(tx, work, false)
    },
  }
}

/** People decide on whatever comes of it: the delegation said so. */
export function wantsPeople({ delegation }: GithubWork): boolean {
  const read = readTeamMessage(JSON.parse(delegation))
  return read.ok && read.message.type === 'task_delegation' && read.message.task.requiresHitl
}

function describeStep(role: string, event: GitHubEvent, task: string | undefined, isRouted: boolean): string {
  if (task === undefined) return describe(role, event)
  return isRouted ? `${task}. Also: ${describe(role, event)}` : task
}

/** Stands outside of the marks, so that nothing is in it that a stranger chose, not even a login. */
function describe(role: string, event: GitHubEvent): string {
  const about = thread(event)
  if (event.comment === undefined) return `${WHAT[role] ?? 'Work on'} ${about}`
  if (role === 'concierge') return `Welcome the author of a comment on ${about}`
  return role === 'community'
    ? `${WHAT.community} ${about}`
    : `${WHAT[role] ?? 'Work on'} ${about} after a comment`
}

/** Of a trigger the protocol knows no name. */
function eventType({ type }: GitHubEvent): string {
  return type.startsWith('periodic_trigger.') ? 'periodic_trigger' : type
}

export function thread({ subject, repository, type }: GitHubEvent): string {
  if (subject === undefined) return `${type} in ${repository ?? 'a repository'}`
  return `${subject.kind === 'issue' ? 'issue' : 'pull request'} #${subject.number}`
}
