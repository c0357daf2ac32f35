import { foldName } from '../../base/agent.ts'
import { AppError } from '../../base/errors.ts'
import { parseId } from '../../base/ids.ts'
import type { Reader } from '../../store/store.ts'
import { type GithubWork, openWorkOf, workOfTask } from '../store/work.ts'
import { decodeTeamMessage } from '../wire/codec.ts'
import {
  createMessageHandler,
  createViolationLog,
  isViolation,
  type MemberMessageOptions,
  type MessageReceipt,
  violation,
} from './member-messages.ts'
import type { TeamMailboxes } from './parts.ts'
import { agentFor } from './settings.ts'

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

export function createMembers(options: MemberMessageOptions & { mailboxes: TeamMailboxes }): Members {
  const { mailboxes } = options
  const { store, clock, team, settings } = options.parts
  const handleMessage = createMessageHandler(options)
  const logViolation = createViolationLog(options.parts)
  const offered = new Map<string, number>()

  async function dueWork(agent: string): Promise<GithubWork[]> {
    const open = await openWorkOf(store, agent)
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
      // A member that has the delegation has also read the message about it.
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
    const isItself = [agent, ...rolesOf(agent)].some((name) => foldName(name) === foldName(message.from))
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

  function rolesOf(agent: string): string[] {
    const named = Object.keys(settings().team)
    return named.filter((role) => agentFor(team(), settings(), role) === agent)
  }

  return { next, say }
}
