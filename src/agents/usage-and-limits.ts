/**
 * Context usage of each agent, and spending on models with its caps.
 *
 * An agent's context has a level: unknown, ok, warning (from 75 %), critical (from 90 %). Each step up is reported once,
 * to the agent's parent and to people; a compaction lowers the level, and the next step up is reported again.
 *
 * Spending counts up to a cap per agent and one for the team. A response that reaches a cap is already paid for, so the
 * agent (or the whole team) is paused after it. A person who resumes an agent grants the same amount again. The service's
 * own calls are booked on `orchestrator`; at a cap the service stops making them.
 */
import { randomUUID } from 'node:crypto'
import type { z } from 'zod'
import { ORCHESTRATOR } from '../base/agent.ts'
import { parseId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import type { Team } from '../commands/team.ts'
import type { Prices } from '../config/config.ts'
import type { Spending } from '../llm/llm.ts'
import { type Mailboxes, post } from '../messages/mailboxes.ts'
import { notifyPeople } from '../people/people.ts'
import type { Usage } from '../runtimes/runtime.ts'
import type { Store, Tx, Work } from '../store/store.ts'
import type { AgentSchema } from './api.ts'
import {
  addSpending,
  attributeSpending,
  changeSession,
  clearUsage,
  readAllUsage,
  readSessions,
  readSpent,
  setPaused,
  type UsageRow,
  writeUsage,
} from './store.ts'

export { type SpentTotals, spentOnTask, spentOnTasks } from './store.ts'

export interface UsageTracker {
  open(): Promise<void>
  used(agent: string, usage: Usage): Promise<void>
  /** A new conversation starts empty. */
  begin(agent: string): Promise<void>
  context(agent: string): ContextUsage | undefined
  /** Total an agent has spent, in the currency of the prices. */
  spent(agent: string): number
  /**
   * Books a model call of the service itself: judging, choosing agents, validating an answer. Returns undefined if a
   * cap forbids the call.
   */
  ownCall(purpose: string, task?: string): OwnCall | undefined
  /** A person resumes the agent: its cap counts from here. */
  grant(tx: Tx, agent: string): Promise<void>
}

export interface OwnCall {
  spent(spending: Spending): void
  /** Attributes the call to a task that is known only afterwards. */
  about(task: string): void
}

/** `percent` is the share of the window. */
export type ContextUsage = NonNullable<z.output<typeof AgentSchema>['context']>

interface UsageTrackerOptions {
  store: Store
  mailboxes: Mailboxes
  log: Log
  team: () => Team
  /** The task of the agent's current turn, if it has one. */
  taskOf(agent: string): string | undefined
  isPaused(agent: string): boolean
  /** Stops deliveries to the agent from now on. */
  pause(agent: string): void
}

export function createUsageTracker({
  store,
  mailboxes,
  log,
  team,
  taskOf,
  isPaused,
  pause,
}: UsageTrackerOptions): UsageTracker {
  const contexts = new Map<string, ContextUsage>()
  const spending = createSpending({ store, team, isPaused, pause })

  /** Serializes updates: two at once would both report the same step up. */
  let last: Promise<unknown> = Promise.resolve()
  function inOrder(update: () => Promise<void>): Promise<void> {
    const updated = last.then(update)
    last = updated.catch(() => {})
    return updated
  }

  async function update(agent: string, usage: Usage, task: string | undefined) {
    const before = contexts.get(agent)
    const next = contextAfter(before, usage)
    await store.write(async (tx) => {
      writeUsage(tx, rowOf(agent, next))
      const { spent } = usage
      if (spent !== undefined) await spending.add(tx, agent, { model: next.model, spent, task })
      if (isWorse(before, next)) await warn(tx, agent, next)
    })
    contexts.set(agent, next)
  }

  async function warn(tx: Tx, agent: string, { percent, level, tokens, window }: ContextUsage) {
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
        ? 'It will soon lose context or stop. Let it hand over its work, then reset its session.'
        : 'Keep its tasks short, or let it summarize what it knows.'
    if (parent !== undefined) {
      await post(tx, mailboxes, {
        to: parent,
        title: text,
        content: `${text}. ${advice}`,
        priority: 'normal',
      })
    }
    await notifyPeople(tx, { agent, question: text, reason: advice })
  }

  return {
    async open() {
      for (const row of await readAllUsage(store)) contexts.set(row.agent, contextOf(row))
      await spending.open()
    },
    used(agent, usage) {
      // Read now: by the time this update is written, the agent may be working on something else.
      const task = taskOf(agent)
      return inOrder(() => update(agent, usage, task))
    },
    async begin(agent) {
      contexts.delete(agent)
      await store.write((tx) => clearUsage(tx, agent))
    },
    context: (agent) => contexts.get(agent),
    spent: spending.of,
    ownCall(purpose, task) {
      if (spending.isCapped()) return undefined
      // A call repeated after a crash costs again, so each call has a key of its own.
      const call = `${purpose}/${randomUUID()}`
      let requests = 0
      const write = (work: Work<void>) =>
        void inOrder(() => store.write(work)).catch((error: unknown) =>
          log.error({ err: error, purpose }, 'spending could not be stored'),
        )
      return {
        spent({ model, ...tokens }) {
          const spent = { key: `${call}/${++requests}`, ...tokens }
          write((tx) => spending.add(tx, ORCHESTRATOR, { model, spent, task }))
        },
        about(id) {
          const keys = Array.from({ length: requests }, (_, index) => `${call}/${index + 1}`)
          if (keys.length > 0) write((tx) => attributeSpending(tx, ORCHESTRATOR, keys, parseId('task', id)!))
        },
      }
    },
    grant: spending.grant,
  }
}

// ── Context ──────────────────────────────────────────────────────────────────────────────────────

const WARNING_PERCENT = 75
const CRITICAL_PERCENT = 90
const LEVELS = ['unknown', 'ok', 'warning', 'critical'] as const

/** Values that this report omits stay as they were. */
function contextAfter(before: ContextUsage | undefined, usage: Usage): ContextUsage {
  const model = usage.model ?? before?.model
  const tokens = usage.contextTokens ?? before?.tokens
  const window = usage.contextWindow ?? before?.window
  const lines = usage.lines ?? before?.lines
  const bytes = usage.bytes ?? before?.bytes
  const percent =
    tokens === undefined || window === undefined ? undefined : Math.round((1000 * tokens) / window) / 10
  return { model, tokens, window, percent, level: levelOf(percent), lines, bytes }
}

function levelOf(percent: number | undefined): ContextUsage['level'] {
  if (percent === undefined) return 'unknown'
  if (percent >= CRITICAL_PERCENT) return 'critical'
  return percent >= WARNING_PERCENT ? 'warning' : 'ok'
}

function isWorse(before: ContextUsage | undefined, next: ContextUsage): boolean {
  const was = LEVELS.indexOf(before?.level ?? 'unknown')
  const is = LEVELS.indexOf(next.level)
  return is > was && is >= LEVELS.indexOf('warning')
}

function rowOf(agent: string, context: ContextUsage): Omit<UsageRow, 'updated_at'> {
  return {
    agent,
    model: context.model ?? null,
    context_tokens: context.tokens ?? null,
    context_window: context.window ?? null,
    lines: context.lines ?? null,
    bytes: context.bytes ?? null,
  }
}

function contextOf(row: UsageRow): ContextUsage {
  return contextAfter(undefined, {
    ...(row.model === null ? {} : { model: row.model }),
    ...(row.context_tokens === null ? {} : { contextTokens: row.context_tokens }),
    ...(row.context_window === null ? {} : { contextWindow: row.context_window }),
    ...(row.lines === null ? {} : { lines: row.lines }),
    ...(row.bytes === null ? {} : { bytes: row.bytes }),
  })
}

// ── Spending ─────────────────────────────────────────────────────────────────────────────────────

type TokensSpent = NonNullable<Usage['spent']>

const TOKENS_PER_PRICE = 1_000_000

/** In the currency of the prices; undefined if the model has no price. */
export function costOf(prices: Prices, model: string | undefined, spent: TokensSpent): number | undefined {
  const price = model === undefined ? undefined : prices.find(([prefix]) => model.startsWith(prefix))?.[1]
  if (price === undefined) return undefined
  return (
    (spent.input * price.input +
      spent.output * price.output +
      spent.cacheRead * price.cacheRead +
      spent.cacheWrite * price.cacheWrite) /
    TOKENS_PER_PRICE
  )
}

/** A response of a model. */
interface Expense {
  model: string | undefined
  spent: TokensSpent
  task: string | undefined
}

const RESUME_ADVICE = 'orc agent resume AGENT lets an agent spend the same amount again.'

function createSpending({
  store,
  team,
  isPaused,
  pause,
}: Pick<UsageTrackerOptions, 'store' | 'team' | 'isPaused' | 'pause'>) {
  const spent = new Map<string, number>()
  const granted = new Map<string, number>()
  let total = 0
  let totalGranted = 0

  const ungranted = (agent: string) => (spent.get(agent) ?? 0) - (granted.get(agent) ?? 0)

  async function add(tx: Tx, agent: string, { model, spent: tokens, task }: Expense) {
    const cost = costOf(team().config.prices, model, tokens)
    const key = task === undefined ? null : (parseId('task', task) ?? null)
    const isNew = await addSpending(tx, agent, { ...tokens, model: model ?? null, cost, task: key })
    if (!isNew || cost === undefined) return
    tx.afterCommit(() => {
      spent.set(agent, (spent.get(agent) ?? 0) + cost)
      total += cost
    })
    await checkCaps(tx, agent, cost)
  }

  async function checkCaps(tx: Tx, agent: string, cost: number) {
    const { perAgent, total: teamCap } = team().config.limits.spend
    const mine = ungranted(agent) + cost
    if (perAgent !== undefined && mine >= perAgent) {
      const reason = `${agent} spent ${mine.toFixed(2)} of ${perAgent} (limits.spend.per_agent)`
      const isFirst = mine - cost < perAgent
      if (agent === ORCHESTRATOR) {
        if (isFirst) await notifyOwnCap(tx, reason)
      } else if (!isPaused(agent)) {
        await pauseAtCap(tx, agent, reason)
        await notify(tx, agent, `${agent} is paused: ${reason}`)
      } else if (isFirst) {
        // Paused for another reason: the person who resumes it should know that this also grants the amount again.
        auditCap(tx, agent, `${agent} stays paused: ${reason}`, reason)
        await notify(tx, agent, `${agent}, which is paused, has reached its cap: ${reason}`)
      }
    }
    const all = total + cost - totalGranted
    if (teamCap !== undefined && all >= teamCap) {
      const reason = `the team spent ${all.toFixed(2)} of ${teamCap} (limits.spend.total)`
      const active = team().config.agents.filter((one) => one.runtime !== 'none' && !isPaused(one.name))
      for (const one of active) await pauseAtCap(tx, one.name, reason)
      if (active.length > 0 || all - cost < teamCap)
        await notify(tx, agent, `All agents are paused: ${reason}`)
    }
  }

  async function notifyOwnCap(tx: Tx, reason: string) {
    const advice = 'Delegators judge claims themselves until limits.spend.per_agent is raised.'
    await notify(tx, ORCHESTRATOR, `The service stopped calling models: ${reason}`, advice)
  }

  async function pauseAtCap(tx: Tx, agent: string, reason: string) {
    setPaused(tx, agent, true)
    auditCap(tx, agent, `${agent} is paused: ${reason}`, reason)
    tx.afterCommit(() => pause(agent))
  }

  function auditCap(tx: Tx, agent: string, text: string, reason: string) {
    const data = { agent, reason }
    tx.audit({ type: 'spend.capped', class: 'internal', actor: ORCHESTRATOR, subject: agent, text, data })
  }

  async function notify(tx: Tx, agent: string, question: string, reason = RESUME_ADVICE) {
    await notifyPeople(tx, { agent, question, reason })
  }

  return {
    add,
    of: (agent: string) => spent.get(agent) ?? 0,
    /** True if a cap forbids model calls of the service itself. */
    isCapped(): boolean {
      const { perAgent, total: teamCap } = team().config.limits.spend
      if (perAgent !== undefined && ungranted(ORCHESTRATOR) >= perAgent) return true
      return teamCap !== undefined && total - totalGranted >= teamCap
    },
    async open() {
      for (const row of await readSpent(store)) {
        spent.set(row.agent, row.cost)
        total += row.cost
      }
      for (const row of await readSessions(store)) granted.set(row.agent, row.granted)
      totalGranted = [...granted.values()].reduce((sum, one) => sum + one, 0)
    },
    async grant(tx: Tx, agent: string) {
      const now = spent.get(agent) ?? 0
      changeSession(tx, agent, { granted: now })
      tx.afterCommit(() => {
        totalGranted += now - (granted.get(agent) ?? 0)
        granted.set(agent, now)
      })
    },
  }
}
