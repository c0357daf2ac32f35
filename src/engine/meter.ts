import { ORCHESTRATOR } from '../model/agent.ts'
import { formatId } from '../model/identifier.ts'
import type { Usage } from '../runtimes/runtime.ts'
import { setPaused } from '../store/agents.ts'
import { insertHumanRequest } from '../store/human-requests.ts'
import { grantSpending, readSessions } from '../store/sessions.ts'
import type { Store, Tx } from '../store/store.ts'
import {
  addSpending,
  clearUsage,
  readAllUsage,
  readSpent,
  type UsageRow,
  writeUsage,
} from '../store/usage.ts'
import { costOf } from './cost.ts'
import type { Mailroom } from './mailroom.ts'
import { post } from './post.ts'
import type { Team } from './team.ts'

/** How full each agent's context is (C26), and what the agents spend. */
export interface Meter {
  open(): Promise<void>
  used(agent: string, usage: Usage): Promise<void>
  /** A new conversation starts empty. */
  begin(agent: string): Promise<void>
  context(agent: string): Context | undefined
  /** What an agent spent since it was first run here, in the currency of the prices. */
  spent(agent: string): number
  /** A person lets the agent go on: its cap counts from here. */
  grant(tx: Tx, agent: string): Promise<void>
}

export interface Context {
  model?: string
  tokens?: number
  window?: number
  /** Of the window, in percent. */
  percent?: number
  level: 'ok' | 'warning' | 'critical' | 'unknown'
  lines?: number
  bytes?: number
}

export interface MeterOptions {
  store: Store
  mailroom: Mailroom
  team: () => Team
  isHeld(agent: string): boolean
  /** Deliveries to the agent are held from now on. */
  hold(agent: string): void
}

const WARNING = 75
const CRITICAL = 90
const LEVELS = ['unknown', 'ok', 'warning', 'critical'] as const
const NOTICE_MS = 30 * 24 * 3600_000
const GO_ON = 'orc resume AGENT lets one go on by the same sum.'

export function createMeter({ store, mailroom, team, isHeld, hold }: MeterOptions): Meter {
  const contexts = new Map<string, Context>()
  const spent = new Map<string, number>()
  const granted = new Map<string, number>()
  let total = 0
  let totalGranted = 0

  /** One after the other, or two at once would both be the step up that is warned of. */
  let last: Promise<unknown> = Promise.resolve()
  function used(agent: string, usage: Usage): Promise<void> {
    const noted = last.then(() => note(agent, usage))
    last = noted.catch(() => {})
    return noted
  }

  async function note(agent: string, usage: Usage) {
    const before = contexts.get(agent)
    const next = contextOf(before, usage)
    const cost = usage.spent && costOf(team().config.prices, usage.model ?? before?.model, usage.spent)
    await store.write(async (tx) => {
      await writeUsage(tx, rowOf(agent, next))
      if (usage.spent !== undefined) {
        const { key, input, output, cacheRead, cacheWrite } = usage.spent
        const isNew = await addSpending(tx, agent, {
          key,
          model: next.model ?? null,
          input,
          output,
          cacheRead,
          cacheWrite,
          cost,
        })
        if (isNew && cost !== undefined) {
          tx.afterCommit(() => {
            spent.set(agent, (spent.get(agent) ?? 0) + cost)
            total += cost
          })
          await checkCaps(tx, agent, cost)
        }
      }
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
      await post(tx, mailroom, { to: parent, title: text, content: `${text}. ${advice}`, priority: 'normal' })
    }
    await notify(tx, agent, text, advice)
  }

  /** Caps are checked with what this answer adds: the one that goes over is paid for already, the next is not made. */
  async function checkCaps(tx: Tx, agent: string, cost: number) {
    const { perAgent, total: most } = team().config.limits.spend
    const mine = (spent.get(agent) ?? 0) + cost - (granted.get(agent) ?? 0)
    if (perAgent !== undefined && mine >= perAgent && !isHeld(agent)) {
      const reason = `${agent} spent ${mine.toFixed(2)} of ${perAgent} (limits.spend.per_agent)`
      await pause(tx, agent, reason)
      await notify(tx, agent, `${agent} is paused: ${reason}`, GO_ON)
    }
    const all = total + cost - totalGranted
    if (most !== undefined && all >= most) {
      const reason = `the team spent ${all.toFixed(2)} of ${most} (limits.spend.total)`
      const going = team().config.agents.filter((one) => one.runtime !== 'none' && !isHeld(one.name))
      for (const one of going) await pause(tx, one.name, reason)
      if (going.length > 0) await notify(tx, agent, `All agents are paused: ${reason}`, GO_ON)
    }
  }

  async function pause(tx: Tx, agent: string, reason: string) {
    await setPaused(tx, agent, true)
    tx.audit({
      type: 'spend.capped',
      class: 'internal',
      actor: ORCHESTRATOR,
      subject: agent,
      text: `${agent} is paused: ${reason}`,
      data: { agent, reason },
    })
    tx.afterCommit(() => hold(agent))
  }

  async function notify(tx: Tx, agent: string, question: string, reason: string) {
    const key = await insertHumanRequest(tx, {
      kind: 'escalation',
      purpose: 'notice',
      asker: agent,
      question,
      reason,
      action: null,
      action_hash: null,
      context: '{}',
      expires_at: tx.now + NOTICE_MS,
    })
    tx.audit({
      type: 'human.told',
      class: 'internal',
      actor: ORCHESTRATOR,
      subject: agent,
      text: `${formatId('req', key)}: ${question}`,
      data: { request_id: formatId('req', key) },
    })
  }

  return {
    async open() {
      for (const row of await readAllUsage(store)) contexts.set(row.agent, fromRow(row))
      for (const row of await readSpent(store)) {
        spent.set(row.agent, row.cost)
        total += row.cost
      }
      for (const row of await readSessions(store)) granted.set(row.agent, row.granted)
      totalGranted = [...granted.values()].reduce((sum, one) => sum + one, 0)
    },
    used,
    async begin(agent) {
      contexts.delete(agent)
      await store.write((tx) => clearUsage(tx, agent))
    },
    context: (agent) => contexts.get(agent),
    spent: (agent) => spent.get(agent) ?? 0,
    async grant(tx, agent) {
      const now = spent.get(agent) ?? 0
      await grantSpending(tx, agent, now)
      tx.afterCommit(() => {
        totalGranted += now - (granted.get(agent) ?? 0)
        granted.set(agent, now)
      })
    },
  }
}

function contextOf(before: Context | undefined, usage: Usage): Context {
  const model = usage.model ?? before?.model
  const tokens = usage.contextTokens ?? before?.tokens
  const window = usage.contextWindow ?? before?.window
  const lines = usage.lines ?? before?.lines
  const bytes = usage.bytes ?? before?.bytes
  const percent =
    tokens === undefined || window === undefined ? undefined : Math.round((1000 * tokens) / window) / 10
  return {
    ...(model === undefined ? {} : { model }),
    ...(tokens === undefined ? {} : { tokens }),
    ...(window === undefined ? {} : { window }),
    ...(percent === undefined ? {} : { percent }),
    level: levelOf(percent),
    ...(lines === undefined ? {} : { lines }),
    ...(bytes === undefined ? {} : { bytes }),
  }
}

function levelOf(percent: number | undefined): Context['level'] {
  if (percent === undefined) return 'unknown'
  if (percent >= CRITICAL) return 'critical'
  return percent >= WARNING ? 'warning' : 'ok'
}

/** Said once for each step up; after a compaction it starts over. */
function isWorse(before: Context | undefined, next: Context): boolean {
  const was = LEVELS.indexOf(before?.level ?? 'unknown')
  const is = LEVELS.indexOf(next.level)
  return is > was && is >= LEVELS.indexOf('warning')
}

function rowOf(agent: string, context: Context): Omit<UsageRow, 'updated_at'> {
  return {
    agent,
    model: context.model ?? null,
    context_tokens: context.tokens ?? null,
    context_window: context.window ?? null,
    lines: context.lines ?? null,
    bytes: context.bytes ?? null,
  }
}

function fromRow(row: UsageRow): Context {
  return contextOf(undefined, {
    ...(row.model === null ? {} : { model: row.model }),
    ...(row.context_tokens === null ? {} : { contextTokens: row.context_tokens }),
    ...(row.context_window === null ? {} : { contextWindow: row.context_window }),
    ...(row.lines === null ? {} : { lines: row.lines }),
    ...(row.bytes === null ? {} : { bytes: row.bytes }),
  })
}
