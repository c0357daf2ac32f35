import { foldName } from '../../base/agent.ts'
import { AppError } from '../../base/errors.ts'
import { parseId } from '../../base/ids.ts'
import type { Reader } from '../../store/store.ts'
import { type GithubWork, openWorkOf, workOfTask } from '../store/work.ts'
import { decodeTeamMessage } from '../wire/codec.ts'
import { createHearing, type HearingOptions, type Told } from './hearing.ts'
import { agentFor } from './settings.ts'
import { createViolations, isViolation, violation } from './violations.ts'

/** A delegation that nobody answered is given again: its message_id says that it is the same. */
const AGAIN_MS = 60_000
const EVIDENCE = 'fetched in the protocol of the GitHub team'

/** A malformed message cannot be decoded, so its text decides whether it may be a flag about conduct (S3.15). */
const MAY_BE_FLAG = /coc_violation/i

/** A member that speaks only the protocol's JSON: tasks go out to it as `task_delegation`, its messages come in (S3.1–S3.16). */
export interface Members {
  /** What it has to do, as JSON of the protocol; waits when there is nothing. */
  next(agent: string, options: { waitMs: number; signal: AbortSignal }): Promise<string[]>
  /** What it says, in the protocol. Throws what does not fit. */
  say(agent: string, text: string): Promise<Told>
}

export function createMembers(options: HearingOptions): Members {
  const { store, clock, mailboxes, team, settings } = options.parts
  const hear = createHearing(options)
  const violated = createViolations(options.parts)
  const offered = new Map<string, number>()

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
      // What comes from here on is for the next look: of what is given out, the mail is there as well.
      const works = await due(agent)
      const left = works.length > 0 ? 0 : Math.max(0, deadline - clock.now())
      // Its mail is the delegation in other words: with the delegation in its hands, it has it.
      const mail = await mailboxes.waitForMail(agent, { waitMs: left, evidence: EVIDENCE, signal })
      if (mail.length > 0) {
        await store.write(async (tx) => {
          const ids: string[] = []
          // Whatever else it was sent is not in what it gets here, and so stays unread.
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

  async function say(agent: string, text: string): Promise<Told> {
    try {
      return await read(agent, text)
    } catch (error) {
      if (isViolation(error)) await violated(agent, error, MAY_BE_FLAG.test(text))
      throw error
    }
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
    return await hear(agent, message, text)
  }

  function rolesOf(agent: string): string[] {
    const named = Object.keys(settings().team)
    return named.filter((role) => agentFor(team(), settings(), role) === agent)
  }

  return { next, say }
}
