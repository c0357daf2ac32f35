/** Members that speak only the JSON of the team protocol: they poll or get callbacks, and send messages. */
import { createHmac, hash } from 'node:crypto'
import { foldName } from '../base/agent.ts'
import { pauseAfter } from '../base/backoff.ts'
import { AppError } from '../base/errors.ts'
import { formatId, parseId } from '../base/ids.ts'
import type { WorkQueue } from '../base/queue-loop.ts'
import { notifyPeople } from '../people/people.ts'
import type { Reader } from '../store/store.ts'
import { findTask } from '../tasks/tasks.ts'
import type { createAgentHealth } from './agent-health.ts'
import {
  type CocViolationFlag,
  decodeTeamMessage,
  type HitlApprovalRequest,
  MAX_MESSAGE_BYTES,
  type TeamMessage,
} from './core/protocol.ts'
import { readReport, sortProposals } from './core/report.ts'
import { reportContextOf } from './delegate-work.ts'
import type { GithubDependencies } from './dependencies.ts'
import { storeFlags } from './moderation.ts'
import type { Proposals } from './proposals.ts'
import { agentFor } from './roles.ts'
import { findWork, type GithubWork, latestWorkAbout, openWork, workOfTask } from './store.ts'

/** An unanswered delegation is handed out again after this time; its message_id tells that it is the same. */
const REPEAT_MS = 60_000
const EVIDENCE = 'fetched in the protocol of the GitHub team'

/** A malformed message cannot be decoded, so its text decides whether it may be a flag about conduct (S3.15). */
const MAY_BE_FLAG = /coc_violation/i

/** Serves members that speak only the JSON of the protocol: they fetch `task_delegation`s and send messages (S3.1–S3.16). */
export interface Members {
  /** The open delegations of the agent as JSON; waits while there are none. */
  next(agent: string, options: { waitMs: number; signal: AbortSignal }): Promise<string[]>
  /** Handles a message of the agent. Throws if the message is invalid. */
  say(agent: string, text: string): Promise<MessageReceipt>
}

export function createMembers(deps: GithubDependencies, effects: MessageEffects): Members {
  const { store, clock, team, settings, mailboxes } = deps
  const handleMessage = createMessageHandler(deps, effects)
  const logViolation = createViolationLog(deps)
  const offered = new Map<string, number>()

  async function dueWork(agent: string): Promise<GithubWork[]> {
    const open = await openWork(store, agent)
    const keys = new Set(open.map(keyOf))
    for (const key of offered.keys()) if (!keys.has(key) && key.startsWith(`${agent} `)) offered.delete(key)
    return open.filter(
      (work) => clock.now() - (offered.get(keyOf(work)) ?? Number.NEGATIVE_INFINITY) >= REPEAT_MS,
    )
  }

  const keyOf = ({ agent, id, attempts }: GithubWork) => `${agent} ${id} ${attempts}`

  async function next(
    agent: string,
    { waitMs, signal }: { waitMs: number; signal: AbortSignal },
  ): Promise<string[]> {
    const deadline = clock.now() + waitMs
    for (;;) {
      // Read before the mail: the mail of every delegation handed out here has then arrived.
      const works = await dueWork(agent)
      const left = works.length > 0 ? 0 : Math.max(0, deadline - clock.now())
      // Fetching a delegation also acknowledges the message about it.
      const mail = await mailboxes.waitForMail(agent, { waitMs: left, evidence: EVIDENCE, signal })
      if (mail.length > 0) {
        await store.write(async (tx) => {
          const ids: string[] = []
          // Other messages aren't part of this answer, so they stay unread.
          for (const { id, task } of mail) if (await isDelegation(tx, agent, task?.id)) ids.push(id)
          if (ids.length > 0) await mailboxes.acknowledge(tx, agent, ids, EVIDENCE)
        })
      }
      for (const work of works) offered.set(keyOf(work), clock.now())
      if (works.length > 0) return works.map(({ delegation }) => delegation)
      if (signal.aborted || (mail.length === 0 && clock.now() >= deadline)) return []
    }
  }

  async function isDelegation(reader: Reader, agent: string, task: string | undefined): Promise<boolean> {
    const key = task === undefined ? undefined : parseId('task', task)
    return key !== undefined && (await workOfTask(reader, key))?.agent === agent
  }

  async function say(agent: string, text: string): Promise<MessageReceipt> {
    try {
      return await read(agent, text)
    } catch (error) {
      if (isViolation(error)) await logViolation(agent, error, MAY_BE_FLAG.test(text))
      throw error
    }
  }

  async function read(agent: string, text: string): Promise<MessageReceipt> {
    const decoded = decodeTeamMessage(text)
    if (!decoded.ok) throw violation(decoded.error)
    const message = decoded.value
    const roles = Object.keys(settings().team).filter((role) => agentFor(team(), role) === agent)
    const isItself = [agent, ...roles].some((name) => foldName(name) === foldName(message.from))
    if (!isItself) {
      // The token identifies the sender, not the message (C3).
      await store.write((tx) =>
        tx.audit({
          type: 'security.sender_mismatch',
          class: 'internal',
          actor: agent,
          text: `${agent} sent a ${message.type} as ${message.from.slice(0, 60)}`,
        }),
      )
      throw new AppError('SENDER_MISMATCH', `from_agent: you are ${agent}, not ${message.from.slice(0, 60)}`)
    }
    return await handleMessage(agent, message, text)
  }

  return { next, say }
}

interface MessageEffects {
  proposals: Proposals
  health: Pick<ReturnType<typeof createAgentHealth>, 'reported'>
  /** A flag for moderators was stored. */
  flagged(): void
  /** A proposal was stored. */
  proposed(): void
}

interface MessageReceipt {
  status: 'accepted' | 'known'
  message_id: string
}

/** Handles each message of the protocol that a member sends (S3.8–S3.16). */
function createMessageHandler(
  { store, redact, handle }: GithubDependencies,
  { proposals, health, flagged, proposed }: MessageEffects,
) {
  /** Validates the report first, so that the member gets its mistakes as the answer. */
  async function complete(
    agent: string,
    delegation: string,
    id: string,
    text: string,
  ): Promise<MessageReceipt['status']> {
    const work = await findWork(store, delegation)
    if (work === undefined || work.agent !== agent)
      throw violation(`in_reply_to: ${delegation.slice(0, 80)} is not one of your delegations`)
    const task = work.task === null ? undefined : await findTask(store, formatId('task', work.task))
    if (work.state !== 'delegated' || task === undefined) return 'known'
    const read = readReport(text, reportContextOf(work, task))
    if (!read.ok) throw violation(read.error)
    const receipt = await handle(
      { kind: 'agent', agent },
      { type: 'report', fields: { in_response_to: task.id, status: 'completed', result: text } },
      { idempotencyKey: `team/${id}`.slice(0, 200) },
    )
    if (receipt.status === 'error') throw new AppError(receipt.code, receipt.message)
    return 'accepted'
  }

  async function workFor(agent: string, delegation: string | undefined, number: number | undefined) {
    const named = delegation === undefined ? undefined : await findWork(store, delegation)
    if (named !== undefined) return named.agent === agent ? named : undefined
    return await latestWorkAbout(store, agent, number)
  }

  async function flag(agent: string, message: CocViolationFlag, text: string): Promise<void> {
    const work = await workFor(agent, message.inReplyTo, undefined)
    const task = work?.task ? await findTask(store, formatId('task', work.task)) : undefined
    await store.write((tx) => {
      storeFlags(tx, redact, {
        context: {
          delegation: `${work?.id ?? agent}/${hash('sha256', message.id).slice(0, 16)}`,
          task: task?.id ?? 'task_0',
          agent,
          role: work?.role ?? message.from,
          at: message.at,
          ...(work?.number ? { number: work.number } : {}),
        },
        repository: work?.repository ?? '',
        flags: [JSON.parse(text) as Record<string, unknown>],
      })
    })
    flagged()
  }

  async function ask(agent: string, message: HitlApprovalRequest): Promise<void> {
    const { issueNumber, prNumber } = message.proposedAction
    const work = await workFor(agent, message.inReplyTo, issueNumber ?? prNumber)
    if (work === undefined) throw violation('in_reply_to: you have no task on this thread')
    const { proposals: asked, refused } = sortProposals(undefined, [message], work.number ?? undefined)
    const [first] = refused
    if (first !== undefined) throw violation(`${first.type}: ${first.why}`)
    const { rationale } = message
    await store.write(async (tx) => {
      for (const proposal of asked)
        await proposals.propose(tx, { work, proposal, rationale, wantsReview: false })
    })
    proposed()
  }

  return async (agent: string, message: TeamMessage, text: string): Promise<MessageReceipt> => {
    const receipt: MessageReceipt = { status: 'accepted', message_id: message.id }
    switch (message.type) {
      case 'task_delegation':
        throw new AppError(
          'FORBIDDEN',
          'Only the orchestrator delegates tasks to agents of the GitHub team (S3.1)',
        )
      case 'agent_health_check':
        health.reported(agent, message)
        return receipt
      case 'task_completion':
        return { ...receipt, status: await complete(agent, message.inReplyTo, message.id, text) }
      case 'coc_violation_flag':
        await flag(agent, message, text)
        return receipt
      case 'hitl_approval_request':
        await ask(agent, message)
        return receipt
    }
  }
}

const VIOLATION = 'Protocol violation'
/** Notify people after this many violations of one agent within the time. */
const MAX_VIOLATIONS = 3
const VIOLATION_WINDOW_MS = 3600_000

function violation(problem: string): AppError {
  return new AppError('INVALID_COMMAND', `${VIOLATION}: ${problem}`, {
    hint: 'docs/github.md describes the messages.',
  })
}

function isViolation(error: unknown): error is AppError {
  return error instanceof AppError && error.message.startsWith(VIOLATION)
}

/** Records each violation of the protocol and notifies people of repeated ones (S3.25), except about conduct (S3.15). */
function createViolationLog({ store, clock, redact, team }: GithubDependencies) {
  const times = new Map<string, number[]>()

  return async (agent: string, { message }: AppError, mayBeFlag: boolean): Promise<void> => {
    if (team().isConfidential(agent) || mayBeFlag) return
    const now = clock.now()
    const recent = [...(times.get(agent) ?? []), now].filter((at) => now - at < VIOLATION_WINDOW_MS)
    // After a notice the count starts again.
    times.set(agent, recent.length === MAX_VIOLATIONS ? [] : recent)
    await store.write(async (tx) => {
      tx.audit({
        type: 'github.violation',
        class: 'internal',
        actor: agent,
        text: redact(`${agent}: ${message}`.slice(0, 500)),
      })
      if (recent.length !== MAX_VIOLATIONS) return
      const question = `${agent} keeps violating the protocol of the GitHub team`
      const why = `${recent.length} invalid messages within an hour. The last: ${message}`
      await notifyPeople(tx, { agent, question, reason: redact(why.slice(0, 2000)) })
    })
  }
}

const TIMEOUT_MS = 30_000

interface PendingCallback {
  readonly agent: string
  readonly delegation: string
  attempts: number
  notBefore: number
}

/** Posts delegations to members with a callback URL. A message in the response counts as a message of the member. */
export function createCallbacks(
  { store, clock, settings, log, env }: GithubDependencies,
  members: Members,
): WorkQueue & { close(): void } {
  const closing = new AbortController()
  let pending: PendingCallback[] = []

  /** Pending callbacks live in memory; after a restart the open delegations are collected again. */
  async function collect() {
    for (const agent of Object.keys(settings().callbacks)) {
      if ((await openWork(store, agent)).length === 0) continue
      for (const delegation of await members.next(agent, { waitMs: 0, signal: closing.signal }))
        pending.push({ agent, delegation, attempts: 0, notBefore: 0 })
    }
  }

  /** Returns why the delegation did not arrive. */
  async function post({ agent, delegation }: PendingCallback): Promise<string | undefined> {
    const { urlEnv, secretEnv } = settings().callbacks[agent]!
    const url = env[urlEnv]
    if (!url) return `${urlEnv} is not set`
    const secret = secretEnv === undefined ? undefined : env[secretEnv]
    if (secretEnv !== undefined && !secret) return `${secretEnv} is not set`
    const signature = secret ? createHmac('sha256', secret).update(delegation).digest('hex') : undefined
    const response = await fetch(url, {
      method: 'POST',
      redirect: 'manual',
      headers: {
        'content-type': 'application/json',
        ...(signature === undefined ? {} : { 'x-orchub-signature-256': `sha256=${signature}` }),
      },
      body: delegation,
      signal: AbortSignal.any([closing.signal, AbortSignal.timeout(TIMEOUT_MS)]),
    })
    if (!response.ok) {
      response.body?.cancel().catch(() => {})
      return `it answered with ${response.status}`
    }
    const body = (await response.text()).slice(0, MAX_MESSAGE_BYTES + 1)
    // Any other body only confirms the receipt.
    if (!/^\s*[[{][\s\S]*"message_type"/.test(body)) return undefined
    await members
      .say(agent, body)
      .catch((error: unknown) =>
        log.warn({ agent, err: error }, 'refused the message in the response to a callback'),
      )
    return undefined
  }

  return {
    async next() {
      await collect()
      const callback = pending.find(({ notBefore }) => notBefore <= clock.now())
      if (callback === undefined) return false
      const problem = await post(callback).catch((error: unknown) =>
        error instanceof Error ? error.message : String(error),
      )
      const isOpen = (await openWork(store, callback.agent)).some(
        ({ delegation }) => delegation === callback.delegation,
      )
      if (problem === undefined || !isOpen) pending = pending.filter((one) => one !== callback)
      else {
        callback.attempts += 1
        callback.notBefore = clock.now() + pauseAfter(callback.attempts)
        log.warn(
          { agent: callback.agent, problem },
          'cannot reach the callback of a GitHub team member; retrying',
        )
      }
      return true
    },
    async due() {
      await collect()
      return pending.length === 0 ? undefined : Math.min(...pending.map(({ notBefore }) => notBefore))
    },
    close: () => closing.abort(),
  }
}
