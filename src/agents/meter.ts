import { randomUUID } from 'node:crypto'
import { ORCHESTRATOR } from '../base/agent.ts'
import { parseId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import type { Team } from '../commands/team.ts'
import type { Spending } from '../llm/llm.ts'
import type { Mailboxes } from '../messages/mailboxes.ts'
import { post } from '../messages/post.ts'
import { tellPeople } from '../people/notices.ts'
import type { Usage } from '../runtimes/runtime.ts'
import type { Store, Tx, Work } from '../store/store.ts'
import { type Context, contextAfter, fromRow, isWorse, rowOf } from './context-usage.ts'
import { createSpending } from './spending.ts'
import { attributeSpending, clearUsage, readAllUsage, writeUsage } from './store/usage.ts'

/** How full each agent's context is (C26), and what agents and the service spend. */
export interface Meter {
  open(): Promise<void>
  used(agent: string, usage: Usage): Promise<void>
  /** A new conversation starts empty. */
  begin(agent: string): Promise<void>
  context(agent: string): Context | undefined
  /** What an agent spent since it was first run here, in the currency of the prices. */
  spent(agent: string): number
  /**
   * For a call of the service's own, to judge, to choose agents, to check an answer: hears of what it costs. Undefined
   * when a cap keeps it from being made.
   */
  ownCall(purpose: string, task?: string): OwnCall | undefined
  /** A person lets the agent go on: its cap counts from here. */
  grant(tx: Tx, agent: string): Promise<void>
}

export interface OwnCall {
  spent(spending: Spending): void
  /** What it was for, where that is known only afterwards. */
  about(task: string): void
}

export interface MeterOptions {
  store: Store
  mailboxes: Mailboxes
  log: Log
  team: () => Team
  /** The task that the agent's turn is about, where it is one. */
  taskOf(agent: string): string | undefined
  isHeld(agent: string): boolean
  /** Deliveries to the agent are held from now on. */
  hold(agent: string): void
}

export function createMeter({ store, mailboxes, log, team, taskOf, isHeld, hold }: MeterOptions): Meter {
  const contexts = new Map<string, Context>()
  const spending = createSpending({ store, team, isHeld, hold, notify })

  /** One after the other, or two at once would both be the step up that is warned of. */
  let last: Promise<unknown> = Promise.resolve()
  function inOrder(note: () => Promise<void>): Promise<void> {
    const noted = last.then(note)
    last = noted.catch(() => {})
    return noted
  }

  async function note(agent: string, usage: Usage, task: string | undefined) {
    const before = contexts.get(agent)
    const next = contextAfter(before, usage)
    await store.write(async (tx) => {
      await writeUsage(tx, rowOf(agent, next))
      const { spent } = usage
      if (spent !== undefined) await spending.add(tx, agent, { model: next.model, spent, task })
      if (isWorse(before, next)) await warn(tx, agent, next)
    })
    contexts.set(agent, next)
  }

  async function warn(tx: Tx, agent: string, { percent, level, tokens, window }: Context) {
    const text = `${agent}'s context is ${percent} % full (${tokens} of ${window} tokens)`
    tx.audit({
      type: `context.${level}`,
      class: 'internal',
      actor: ORCHESTRATOR,
      subject: agent,
      text,
      data: { agent, percent, tokens, window },
    })
    const parent = team().config.agents.find((one) => one.name === agent)?.parent
    const advice =
      level === 'critical'
        ? 'It will soon forget or stop. Have it hand its work over, then reset its session.'
        : 'Keep its tasks short, or have it sum up what it knows.'
    if (parent !== undefined) {
      await post(tx, mailboxes, {
        to: parent,
        title: text,
        content: `${text}. ${advice}`,
        priority: 'normal',
      })
    }
    await notify(tx, agent, text, advice)
  }

  async function notify(tx: Tx, agent: string, question: string, reason: string) {
    await tellPeople(tx, { agent, question, reason })
  }

  return {
    async open() {
      for (const row of await readAllUsage(store)) contexts.set(row.agent, fromRow(row))
      await spending.open()
    },
    used(agent, usage) {
      // Now, not when its turn to be written has come: by then the agent may be on something else.
      const task = taskOf(agent)
      return inOrder(() => note(agent, usage, task))
    },
    async begin(agent) {
      contexts.delete(agent)
      await store.write((tx) => clearUsage(tx, agent))
    },
    context: (agent) => contexts.get(agent),
    spent: spending.of,
    ownCall(purpose, task) {
      if (spending.isCapped()) return undefined
      // Each request is told of once. What is asked again after a crash costs again, and has a key of its own.
      const call = `${purpose}/${randomUUID()}`
      let requests = 0
      const keep = (work: Work<void>) =>
        void inOrder(() => store.write(work)).catch((error: unknown) =>
          log.error({ err: error, purpose }, 'spending could not be stored'),
        )
      return {
        spent({ model, ...tokens }) {
          const spent = { key: `${call}/${++requests}`, ...tokens }
          keep((tx) => spending.add(tx, ORCHESTRATOR, { model, spent, task }))
        },
        about(id) {
          const keys = Array.from({ length: requests }, (_, index) => `${call}/${index + 1}`)
          if (keys.length > 0) keep((tx) => attributeSpending(tx, ORCHESTRATOR, keys, parseId('task', id)!))
        },
      }
    },
    grant: spending.grant,
  }
}
