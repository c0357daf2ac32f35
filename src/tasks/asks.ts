import { hash } from 'node:crypto'
import type { Meter, OwnCall } from '../agents/usage.ts'
import { OPERATOR, ORCHESTRATOR } from '../base/agent.ts'
import { AppError } from '../base/errors.ts'
import { redactedExcerpt } from '../base/excerpt.ts'
import { unknownAgent } from '../commands/identity.ts'
import { findReceipt, keepReceipt, type StoredReceipt } from '../commands/store/idempotency.ts'
import type { Team } from '../commands/team.ts'
import type { Models } from '../llm/llm.ts'
import type { Store, Tx } from '../store/store.ts'
import { type Ask, type Choice, chooseAgents } from './choosing/choose-agents.ts'
import { selectAgents } from './choosing/select-agents.ts'
import { refusalError } from './refusal.ts'
import type { Tasks } from './tasks.ts'

/** What became of it. From here on it is a task like any other, and its id is the task's. */
export interface Asked extends Pick<Choice, 'root' | 'chosen' | 'why' | 'by' | 'unknown'> {
  task_id: string
}

/** A person's question to the team (S2.9): who is needed is chosen (S2.14), and the root agent gets it as a task. */
export interface Asks {
  /** The same key asks once, whatever breaks in between; without one it is asked each time. */
  ask(said: Ask, owner: string, idempotencyKey?: string): Promise<Asked>
  close(): void
}

export interface AsksOptions {
  store: Store
  tasks: Tasks
  models: Models | undefined
  meter: Pick<Meter, 'ownCall'>
  team(): Team
  redact(text: string): string
}

export function createAsks({ store, tasks, models, meter, team, redact }: AsksOptions): Asks {
  /** What is being chosen for a key: whoever comes with the same key waits for the same choice. */
  const underWay = new Map<string, { digest: string; asked: Promise<Asked> }>()
  const ending = new AbortController()

  async function askOnce(said: Ask, key: Key | undefined): Promise<Asked> {
    const call = team().config.tasks.selector === undefined ? undefined : meter.ownCall('select')
    const choice = await choose(said, call)
    if (ending.signal.aborted) throw stopping()
    const asked = await store.write((tx) => give(tx, said, choice, key))
    if (asked instanceof AppError) throw asked
    call?.about(asked.task_id)
    return asked
  }

  /** The choice, the task and the key are kept together: a repetition finds all of them, or asks for the first time. */
  async function give(tx: Tx, { question }: Ask, choice: Choice, key: Key | undefined) {
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
    const asked: Asked = { task_id: id, ...chosen, root }
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
      await keepReceipt(tx, key.owner, key.key, { digest: key.digest, receipt: JSON.stringify(asked) })
    }
    return asked
  }

  /** Without a call, because none is configured or a cap on spending is reached, words are compared. */
  function choose(said: Ask, call: OwnCall | undefined): Promise<Choice> {
    const now = team()
    const model = call === undefined ? undefined : now.config.tasks.selector
    return chooseAgents(now, said, (available) =>
      selectAgents(models, model, { task: said.question, available }, { signal: ending.signal, ...call }),
    )
  }

  return {
    async ask(said, owner, idempotencyKey) {
      checkQuestion(team(), said)
      if (idempotencyKey === undefined) return await askOnce(said, undefined)
      const key: Key = { owner, key: idempotencyKey, digest: digestOf(said) }
      const earlier = await findReceipt(store, owner, idempotencyKey)
      if (earlier !== undefined) {
        const asked = repeated(earlier, key)
        if (asked instanceof AppError) throw asked
        return asked
      }
      const place = `${owner} ${idempotencyKey}`
      const other = underWay.get(place)
      if (other !== undefined) {
        if (other.digest !== key.digest) throw conflict(key)
        return await other.asked
      }
      const asked = askOnce(said, key).finally(() => underWay.delete(place))
      underWay.set(place, { digest: key.digest, asked })
      return await asked
    },
    close: () => ending.abort(),
  }
}

interface Key {
  owner: string
  key: string
  digest: string
}

function digestOf({ question, agent }: Ask): string {
  return hash('sha256', JSON.stringify(['ask', question, agent ?? null]))
}

function repeated(earlier: StoredReceipt, key: Key): Asked | AppError {
  return earlier.digest === key.digest ? (JSON.parse(earlier.receipt) as Asked) : conflict(key)
}

function conflict({ key }: Key): AppError {
  return new AppError(
    'IDEMPOTENCY_CONFLICT',
    `The idempotency key "${key.slice(0, 100)}" came before with something else`,
    { hint: 'Use a new key for each question, and the same key only to repeat the same one.' },
  )
}

function checkQuestion({ config }: Team, { question }: Ask) {
  if (question.trim() === '') {
    throw new AppError('INVALID_REQUEST', 'The question is blank', { hint: 'Ask something.' })
  }
  const bytes = Buffer.byteLength(question)
  const most = config.limits.messageBytes
  if (bytes > most) {
    throw new AppError('TOO_LARGE', `The question is ${bytes} bytes; it holds at most ${most}`, {
      hint: 'Put the details into a file and name its path.',
    })
  }
}

function stopping(): AppError {
  return new AppError('SERVICE_STOPPING', 'The service is shutting down', {
    hint: 'Ask again when it is back: with the same idempotency key it is asked once.',
  })
}
