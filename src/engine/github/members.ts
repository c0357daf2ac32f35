import { hash } from 'node:crypto'
import { readReport } from '../../github/report.ts'
import { foldName } from '../../model/agent.ts'
import { AppError } from '../../model/errors.ts'
import { formatId, parseId } from '../../model/identifier.ts'
import { findWork, type GithubWork, latestWorkAbout, openWorkOf, workOfTask } from '../../store/github.ts'
import type { Reader } from '../../store/store.ts'
import { findTask } from '../../store/tasks.ts'
import { decodeTeamMessage, type TeamMessage } from '../../wire/github-team.ts'
import { isForModerators } from '../discretion.ts'
import type { Handle } from '../handle.ts'
import type { Mailroom } from '../mailroom.ts'
import { askedOf } from './asked.ts'
import type { createEscalating } from './escalating.ts'
import { keepFlags } from './flags.ts'
import type { createHealth } from './health.ts'
import type { Proposals } from './proposals.ts'
import { agentFor, type GithubParts } from './settings.ts'

/** A delegation that nobody answered is given again: its message_id says that it is the same. */
const AGAIN_MS = 60_000
/** So many within the time, and people hear of it. */
const MANY_VIOLATIONS = 3
const VIOLATIONS_MS = 3600_000
const VIOLATION = 'Protocol violation'
const EVIDENCE = 'fetched in the protocol of the GitHub team'

export interface Told {
  status: 'accepted' | 'known'
  message_id: string
}

/** A member that speaks only the protocol's JSON: tasks go out to it as `task_delegation`, its messages come in (S3.1–S3.16). */
export interface Members {
  /** What it has to do, as JSON of the protocol; waits when there is nothing. */
  next(agent: string, options: { waitMs: number; signal: AbortSignal }): Promise<string[]>
  /** What it says, in the protocol. Throws what does not fit. */
  say(agent: string, text: string): Promise<Told>
}

export interface MembersOptions {
  parts: GithubParts & { readonly mailroom: Mailroom }
  handle: Handle
  proposals: Proposals
  health: Pick<ReturnType<typeof createHealth>, 'heard'>
  /** To people's inbox. */
  notice: ReturnType<typeof createEscalating>['notice']
  /** Something for moderators may have come. */
  flagged(): void
}

export function createMembers(options: MembersOptions): Members {
  const { parts, handle, proposals, health, notice, flagged } = options
  const { store, clock, mailroom, redact, team, settings } = parts
  const offered = new Map<string, number>()
  const violations = new Map<string, number[]>()

  /** Those that were not given, or long ago. */
  async function due(agent: string): Promise<GithubWork[]> {
    const open = await openWorkOf(store, agent)
    const keys = new Set(open.map(keyOf))
    for (const key of offered.keys()) if (!keys.has(key) && key.startsWith(`${agent} `)) offered.delete(key)
    return open.filter(
      (work) => clock.now() - (offered.get(keyOf(work)) ?? Number.NEGATIVE_INFINITY) >= AGAIN_MS,
    )
  }

  const keyOf = ({ agent, id, attempts }: GithubWork) => `${agent} ${id} ${attempts}`

  async function next(
    agent: string,
    { waitMs, signal }: { waitMs: number; signal: AbortSignal },
  ): Promise<string[]> {
    const deadline = clock.now() + waitMs
    for (;;) {
      const isThere = (await due(agent)).length > 0
      const left = isThere ? 0 : Math.max(0, deadline - clock.now())
      // Its mail is the delegation in other words: with the delegation in its hands, it has it.
      const mail = await mailroom.waitForMail(agent, { waitMs: left, evidence: EVIDENCE, signal })
      if (mail.length > 0) {
        await store.write(async (tx) => {
          const ids: string[] = []
          // Whatever else it was sent is not in what it gets here, and so stays unread.
          for (const { id, task } of mail) if (await isDelegation(tx, agent, task?.id)) ids.push(id)
          if (ids.length > 0) await mailroom.acknowledge(tx, agent, ids, EVIDENCE)
        })
      }
      const works = await due(agent)
      for (const work of works) offered.set(keyOf(work), clock.now())
      if (works.length > 0) return works.map(({ delegation }) => delegation)
      if (signal.aborted || clock.now() >= deadline) return []
    }
  }

  async function isDelegation(reader: Reader, agent: string, task: string | undefined): Promise<boolean> {
    const key = task === undefined ? undefined : parseId('task', task)
    return key !== undefined && (await workOfTask(reader, key))?.agent === agent
  }

  async function say(agent: string, text: string): Promise<Told> {
    try {
      return await read(agent, text)
    } catch (error) {
      if (error instanceof AppError && error.message.startsWith(VIOLATION)) await violated(agent, text, error)
      throw error
    }
  }

  /** S3.25: each is written down, and of one that goes on people hear. What may be about a person is not (S3.15). */
  async function violated(agent: string, text: string, { message }: AppError): Promise<void> {
    if (isForModerators(team(), agent) || /coc_violation/i.test(text)) return
    const now = clock.now()
    const recent = [...(violations.get(agent) ?? []), now].filter((at) => now - at < VIOLATIONS_MS)
    violations.set(agent, recent.slice(-MANY_VIOLATIONS))
    await store.write(async (tx) => {
      tx.audit({
        type: 'github.violation',
        class: 'internal',
        actor: agent,
        text: redact(`${agent}: ${message}`.slice(0, 500)),
      })
      if (recent.length !== MANY_VIOLATIONS) return
      const question = `${agent} keeps breaking the protocol of the GitHub team`
      const why = `${recent.length} messages within an hour did not fit. The last: ${message}`
      await notice(tx, agent, question, redact(why.slice(0, 2000)))
    })
    // Told; what comes now counts anew.
    if (recent.length === MANY_VIOLATIONS) violations.delete(agent)
  }

  async function read(agent: string, text: string): Promise<Told> {
    const decoded = decodeTeamMessage(text)
    if (!decoded.ok) throw violation(decoded.problem)
    const { message } = decoded
    const isItself = [agent, ...rolesOf(agent)].some((name) => foldName(name) === foldName(message.from))
    if (!isItself) {
      // C3: who it is, its token says.
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
    return await heard(agent, message, text)
  }

  async function heard(agent: string, message: TeamMessage, text: string): Promise<Told> {
    const told: Told = { status: 'accepted', message_id: message.id }
    switch (message.type) {
      case 'task_delegation':
        throw new AppError(
          'FORBIDDEN',
          'Agents of the GitHub team get their tasks from the orchestrator only (S3.1)',
        )
      case 'agent_health_check':
        health.heard(agent, message)
        return told
      case 'task_completion':
        return { ...told, status: await complete(agent, message.inReplyTo, message.id, text) }
      case 'coc_violation_flag': {
        const work = await workFor(agent, message.inReplyTo, undefined)
        const task = work?.task ? await findTask(store, formatId('task', work.task)) : undefined
        await store.write(async (tx) => {
          await keepFlags(tx, redact, {
            asked: {
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
        return told
      }
      case 'hitl_approval_request': {
        const { issueNumber, prNumber } = message.proposedAction
        const work = await workFor(agent, message.inReplyTo, issueNumber ?? prNumber)
        if (work === undefined) throw violation('in_reply_to: there is no task of yours that this is about')
        const completion = {
          ...COMPLETION,
          message_id: `${message.id}-completion`,
          timestamp: message.at,
          from_agent: message.from,
          in_reply_to: work.id,
        }
        const asked = askedOf(work, { id: formatId('task', work.task ?? 0), createdAt: clock.now() })
        const read = readReport(
          JSON.stringify([{ ...(JSON.parse(text) as object), in_reply_to: work.id }, completion]),
          asked,
        )
        if (!read.ok) throw violation(read.problem)
        const [refused] = read.report.refused
        if (refused !== undefined) throw violation(`${refused.type}: ${refused.why}`)
        await store.write(async (tx) => {
          for (const proposal of read.report.byApproval)
            await proposals.propose(tx, {
              work,
              proposal,
              rationale: message.rationale,
              requiresHitl: true,
              wantsReview: false,
            })
        })
        return told
      }
    }
  }

  /** A report of its task, checked before anything is done with it: what is wrong comes back as the answer. */
  async function complete(
    agent: string,
    delegation: string,
    id: string,
    text: string,
  ): Promise<Told['status']> {
    const work = await findWork(store, delegation)
    if (work === undefined || work.agent !== agent)
      throw violation(`in_reply_to: ${delegation.slice(0, 80)} is no delegation of yours`)
    const task = work.task === null ? undefined : await findTask(store, formatId('task', work.task))
    if (work.state !== 'delegated' || task === undefined) return 'known'
    const read = readReport(text, askedOf(work, task))
    if (!read.ok) throw violation(read.problem)
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

  function rolesOf(agent: string): string[] {
    const named = Object.keys(settings().team)
    return named.filter((role) => agentFor(team(), settings(), role) === agent)
  }

  return { next, say }
}

/** A request for approval stands alone; what it is part of says nothing more. */
const COMPLETION = {
  message_type: 'task_completion',
  to_agent: 'orchestrator',
  status: 'success',
  confidence_score: 1,
  actions_taken: [],
  rationale: '',
}

/** S3.25. */
function violation(problem: string): AppError {
  return new AppError('INVALID_COMMAND', `${VIOLATION}: ${problem}`, {
    hint: 'docs/github.md shows the messages.',
  })
}
