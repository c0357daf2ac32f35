import { hash } from 'node:crypto'
import type { Meter, OwnCall } from '../agents/usage.ts'
import { OPERATOR, ORCHESTRATOR } from '../base/agent.ts'
import { AppError } from '../base/errors.ts'
import { redactedExcerpt } from '../base/excerpt.ts'
import { findReceipt, keepReceipt, type StoredReceipt } from '../commands/idempotency.ts'
import { unknownAgent } from '../commands/identity.ts'
import type { Team } from '../commands/team.ts'
import type { Models } from '../llm/llm.ts'
import type { Store, Tx } from '../store/store.ts'
import { type Choice, chooseAgents, selectAgents, type TeamQuestion } from './choose-agents.ts'
import { refusalError } from './core/refusal.ts'
import type { Tasks } from './tasks.ts'

/** The task that a question became. */
interface AcceptedAsk extends Pick<Choice, 'root' | 'chosen' | 'why' | 'by' | 'unknown'> {
  task_id: string
}

/** Questions of people to the team (S2.9): chooses the agents that are needed (S2.14) and delegates to the root agent. */
export interface Asks {
  /** The same key asks once, even after a crash. */
  ask(question: TeamQuestion, owner: string, idempotencyKey?: string): Promise<AcceptedAsk>
  close(): void
}

interface AsksOptions {
  store: Store
  tasks: Tasks
  models: Models | undefined
  meter: Pick<Meter, 'ownCall'>
  team(): Team
  redact(text: string): string
}

export function createAsks({ store, tasks, models, meter, team, redact }: AsksOptions): Asks {
  /** Questions whose agents are being chosen, by key: a repetition waits for the same choice. */
  const running = new Map<string, { digest: string; accepted: Promise<AcceptedAsk> }>()
  const ending = new AbortController()

  async function askOnce(asked: TeamQuestion, key: AskKey | undefined): Promise<AcceptedAsk> {
    const call = team().config.tasks.selector === undefined ? undefined : meter.ownCall('select')
    const choice = await choose(asked, call)
    if (ending.signal.aborted) throw stopping()
    const accepted = await store.write((tx) => delegate(tx, asked, choice, key))
    if (accepted instanceof AppError) throw accepted
    call?.about(accepted.task_id)
    return accepted
  }

  /** Stores choice, task and key in one transaction: a repetition finds all of them or none. */
  async function delegate(tx: Tx, { question }: TeamQuestion, choice: Choice, key: AskKey | undefined) {
    if (key !== undefined) {
      const earlier = await findReceipt(tx, key.owner, key.key)
      if (earlier !== undefined) return repeated(earlier, key)
    }
    const { context, rootWhy, failure, ...chosen } = choice
    const root = team().resolve(chosen.root)
    if (root === undefined) return unknownAgent(team(), chosen.root)
    const delegated = await tasks.delegate(tx, {
      delegator: OPERATOR,
      agent: root,
      text: question,
      context,
      requiresResponse: true,
      checks: [],
    })
    if (!delegated.ok) return refusalError(delegated)
    const { id } = delegated.task
    const accepted: AcceptedAsk = { task_id: id, ...chosen, root }
    const why = redactedExcerpt(redact, chosen.why)
    tx.audit({
      type: 'task.selected',
      class: 'internal',
      actor: ORCHESTRATOR,
      subject: root,
      text: `${id}: ${root} answers; ${chosen.chosen.join(', ') || 'nobody'} may be needed: ${why}`,
      data: {
        task_id: id,
        root: id,
        agent: root,
        chosen: chosen.chosen,
        why,
        by: chosen.by,
        unknown: chosen.unknown,
        ...(rootWhy === undefined ? {} : { root_why: redactedExcerpt(redact, rootWhy) }),
        ...(failure === undefined ? {} : { failure }),
      },
    })
    if (key !== undefined) {
      await keepReceipt(tx, key.owner, key.key, { digest: key.digest, receipt: JSON.stringify(accepted) })
    }
    return accepted
  }

  /** Without a model, or beyond the spending limit, agents are chosen by keywords. */
  function choose(asked: TeamQuestion, call: OwnCall | undefined): Promise<Choice> {
    const now = team()
    const model = call === undefined ? undefined : now.config.tasks.selector
    return chooseAgents(now, asked, (available) =>
      selectAgents(models, model, { task: asked.question, available }, { signal: ending.signal, ...call }),
    )
  }

  return {
    async ask(asked, owner, idempotencyKey) {
      checkQuestion(team(), asked)
      if (idempotencyKey === undefined) return await askOnce(asked, undefined)
      const key: AskKey = { owner, key: idempotencyKey, digest: digestOf(asked) }
      const earlier = await findReceipt(store, owner, idempotencyKey)
      if (earlier !== undefined) {
        const accepted = repeated(earlier, key)
        if (accepted instanceof AppError) throw accepted
        return accepted
      }
      const ownKey = `${owner} ${idempotencyKey}`
      const other = running.get(ownKey)
      if (other !== undefined) {
        if (other.digest !== key.digest) throw conflict(key)
        return await other.accepted
      }
      const accepted = askOnce(asked, key).finally(() => running.delete(ownKey))
      running.set(ownKey, { digest: key.digest, accepted })
      return await accepted
    },
    close: () => ending.abort(),
  }
}

interface AskKey {
  owner: string
  key: string
  digest: string
}

function digestOf({ question, agent }: TeamQuestion): string {
  return hash('sha256', JSON.stringify(['ask', question, agent ?? null]))
}

function repeated(earlier: StoredReceipt, key: AskKey): AcceptedAsk | AppError {
  return earlier.digest === key.digest ? (JSON.parse(earlier.receipt) as AcceptedAsk) : conflict(key)
}

function conflict({ key }: AskKey): AppError {
  return new AppError(
    'IDEMPOTENCY_CONFLICT',
    `The idempotency key "${key.slice(0, 100)}" was already used for another question`,
    { hint: 'Use a new key for each question, and the same key only to repeat it.' },
  )
}

function checkQuestion({ config }: Team, { question }: TeamQuestion) {
  if (question.trim() === '') {
    throw new AppError('INVALID_REQUEST', 'The question is blank', { hint: 'Write a question.' })
  }
  const bytes = Buffer.byteLength(question)
  const most = config.limits.messageBytes
  if (bytes > most) {
    throw new AppError('TOO_LARGE', `The question has ${bytes} bytes; at most ${most} are allowed`, {
      hint: 'Put the details into a file and name its path.',
    })
  }
}

function stopping(): AppError {
  return new AppError('SERVICE_STOPPING', 'The service is shutting down', {
    hint: 'Ask again when it is back. With the same idempotency key the question is asked once.',
  })
}
