import { OPERATOR, ORCHESTRATOR } from '../base/agent.ts'
import { parseId } from '../base/ids.ts'
import type { Tx } from '../store/store.ts'
import { DEFAULT_TASK_TIMEOUT_MS, type Task } from '../tasks/task.ts'
import type { GitHubEvent } from './core/event.ts'
import { encodeTeamMessage, readTeamMessage, type TaskDelegation } from './core/protocol.ts'
import type { ReportContext } from './core/report.ts'
import { AUDIT, type GithubDependencies, toAgent } from './dependencies.ts'
import { type EventContext, isoTime } from './gather-context.ts'
import { agentFor, requiresApproval } from './roles.ts'
import { beginWork, endWork, type GithubWork, insertWork, readFailureStreak, workAfter } from './store.ts'
import { fitDelegation, taskPrompt } from './task-prompt.ts'
import type { RouteStep } from './team-settings.ts'

/** Below the limit of C20, with room for the envelope. */
const MAX_BYTES = 98_000
const MAX_LENGTH = { title: 1000, body: 40_000 }

const WHAT: Readonly<Record<string, string>> = {
  triage: 'Triage',
  concierge: 'Welcome the author of',
  lifecycle: 'Look after',
  scribe: 'Look at the documentation for',
  community: 'Look at what was said in',
}

export interface DelegatedStep extends RouteStep {
  /** The request of a slash command or a scheduled trigger. */
  readonly task?: string
  /** The route of the event names the role too, so the agent gets both tasks in one. */
  readonly isRouted?: boolean
}

export type Delegation = ReturnType<typeof createDelegation>

/** Turns the steps of an event into tasks, each step once. Calls `delegated` after the commit. */
export function createDelegation(
  { tasks, team, settings, redact }: GithubDependencies,
  delegated: () => void,
) {
  function delegationOf(
    work: string,
    role: string,
    event: GitHubEvent,
    context: EventContext,
    tx: Tx,
    { description, requiresHitl }: { description: string; requiresHitl: boolean },
  ) {
    const { subject, comment, repository = 'unknown/unknown' } = event
    // Redacted before the cut, which could otherwise split a secret and leave half of it.
    const clean = (text: string, length: number) => redact(text).slice(0, length).toWellFormed()
    const body = comment?.body || subject?.body || ''
    const delegation: TaskDelegation = {
      type: 'task_delegation',
      id: work,
      at: new Date(tx.now).toISOString(),
      from: ORCHESTRATOR,
      to: role,
      eventContext: {
        eventType: eventType(event),
        eventId: event.id,
        repository,
        triggerTimestamp: new Date(event.receivedAt ?? tx.now).toISOString(),
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
        issueNumber: subject?.kind === 'issue' ? subject.number : undefined,
        prNumber: subject?.kind === 'pull_request' ? subject.number : undefined,
        commentId: comment?.id,
        user: context.user,
        content: subject && {
          title: clean(subject.title, MAX_LENGTH.title),
          body: clean(body, MAX_LENGTH.body),
          labels: subject.labels.slice(0, 100),
          state: subject.state,
          createdAt: isoTime(subject.createdAt),
          updatedAt: isoTime(subject.updatedAt),
          commentsCount: subject.comments,
        },
        additionalContext: {
          ...context.additional,
          excerpts: context.additional.excerpts?.map(({ source, text }) => ({
            source: clean(source, 200),
            text: clean(text, 2000),
          })),
        },
      },
      repositoryContext: context.repository,
    }
    return fitDelegation(delegation, MAX_BYTES)
  }

  /** Starts or skips the steps that waited for this one. */
  async function continueAfter(tx: Tx, work: GithubWork, isSuccess: boolean): Promise<void> {
    for (const next of await workAfter(tx, work.delivery, work.role)) {
      const fits = next.needs === 'any' || (next.needs === 'success') === isSuccess
      if (fits) await start(tx, next)
      else if (await endWork(tx, next.id, 'skipped')) await continueAfter(tx, next, false)
    }
  }

  async function start(tx: Tx, work: GithubWork): Promise<void> {
    const { agent, role, number } = work
    const read = readTeamMessage(JSON.parse(work.delegation))
    if (!read.ok || read.value.type !== 'task_delegation')
      throw new Error(`${work.id} contains no delegation`)
    const delegation = read.value
    const context: WorkContext = {
      github_work: work.id,
      role,
      repository: work.repository,
      ...(number === null ? {} : { number }),
    }
    // The message around the text needs some bytes too.
    const maxBytes = team().config.limits.messageBytes - 2000
    const started = await tasks.delegate(tx, {
      delegator: OPERATOR,
      agent,
      text: taskPrompt(role, delegation, maxBytes),
      context: { ...context },
      requiresResponse: true,
      checks: [],
      judge: null,
    })
    const about = { work: work.id, role, repository: work.repository, ...(number === null ? {} : { number }) }
    if (!started.ok) {
      await endWork(tx, work.id, 'failed')
      tx.audit({
        ...toAgent(agent),
        type: AUDIT.failure,
        text: `Cannot delegate to ${agent}: ${delegation.task.description} (${started.error.message})`,
        data: about,
      })
      await continueAfter(tx, work, false)
      return
    }
    beginWork(tx, work.id, parseId('task', started.value.id)!)
    tx.afterCommit(delegated)
    tx.audit({
      ...toAgent(agent),
      type: AUDIT.task,
      text: delegation.task.description,
      data: { ...about, task_id: started.value.id },
    })
  }

  return {
    start,
    continueAfter,
    /** A step with `after` is stored, and starts when the other step has ended. */
    async delegate(tx: Tx, event: GitHubEvent, context: EventContext, steps: readonly DelegatedStep[]) {
      const ready: GithubWork[] = []
      const skipped: GithubWork[] = []
      for (const { to: role, after, on, task, isRouted = false, requiresHitl = false } of steps) {
        const agent = agentFor(team(), role)
        if (agent === undefined) continue
        const { isSuspended } = await readFailureStreak(tx, agent)
        if (isSuspended) {
          tx.audit({
            ...toAgent(agent),
            type: AUDIT.logged,
            text: `${agent} is suspended after too many failures and skips ${describeThread(event)}`,
            data: {
              delivery: event.id,
              ...(event.repository === undefined ? {} : { repository: event.repository }),
            },
          })
        }
        const id = `${event.id}/${role}`
        const wanted = {
          description: describeStep(role, event, task, isRouted),
          requiresHitl: requiresHitl || requiresApproval(team(), role, []),
        }
        const isBound = after !== undefined && agentFor(team(), after) !== undefined
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
          delegation: encodeTeamMessage(delegationOf(id, role, event, context, tx, wanted)),
        }
        insertWork(tx, work)
        if (isSuspended) skipped.push(work)
        else if (!isBound) ready.push(work)
      }
      // All rows exist before the first starts or is skipped, so that waiting steps are found.
      for (const work of skipped) await endWork(tx, work.id, 'skipped')
      for (const work of ready) await start(tx, work)
      for (const work of skipped) await continueAfter(tx, work, false)
    },
  }
}

/** Whether people decide on every proposal, according to the delegation. */
export function requiresHitl({ delegation }: GithubWork): boolean {
  const read = readTeamMessage(JSON.parse(delegation))
  return read.ok && read.value.type === 'task_delegation' && read.value.task.requiresHitl
}

function describeStep(role: string, event: GitHubEvent, task: string | undefined, isRouted: boolean): string {
  if (task === undefined) return describe(role, event)
  return isRouted ? `${task}. Also: ${describe(role, event)}` : task
}

/** Contains no text of strangers, not even a login: it stands outside of the fence around untrusted text. */
function describe(role: string, event: GitHubEvent): string {
  const about = describeThread(event)
  if (event.comment === undefined) return `${WHAT[role] ?? 'Work on'} ${about}`
  if (role === 'concierge') return `Welcome the author of a comment on ${about}`
  return role === 'community'
    ? `${WHAT.community} ${about}`
    : `${WHAT[role] ?? 'Work on'} ${about} after a comment`
}

/** The protocol does not know the names of triggers. */
function eventType({ type }: GitHubEvent): string {
  return type.startsWith('periodic_trigger.') ? 'periodic_trigger' : type
}

function describeThread({ subject, repository, type }: GitHubEvent): string {
  if (subject === undefined) return `${type} in ${repository ?? 'a repository'}`
  return `${subject.kind === 'issue' ? 'issue' : 'pull request'} #${subject.number}`
}

/** The context of a task for the GitHub team; agents see it with the task. */
export interface WorkContext {
  github_work: string
  role: string
  repository: string
  number?: number
}

/** The values that a report must match. */
export function reportContextOf(
  { id, agent, role, number }: Pick<GithubWork, 'id' | 'agent' | 'role' | 'number'>,
  task: Pick<Task, 'id' | 'createdAt'>,
): ReportContext {
  return {
    delegation: id,
    task: task.id,
    agent,
    role,
    at: new Date(task.createdAt).toISOString(),
    ...(number === null ? {} : { number }),
  }
}
