import { ORCHESTRATOR } from '../base/agent.ts'
import { parseId } from '../base/ids.ts'
import type { Team } from '../commands/team.ts'
import type { Usage } from '../runtimes/runtime.ts'
import type { Store, Tx } from '../store/store.ts'
import { costOf } from './cost.ts'
import { setPaused } from './store/agents.ts'
import { grantSpending, readSessions } from './store/sessions.ts'
import { addSpending, readSpent } from './store/usage.ts'

export interface SpendingOptions {
  store: Store
  team(): Team
  isHeld(agent: string): boolean
  /** Deliveries to the agent are held from now on. */
  hold(agent: string): void
  notify(tx: Tx, agent: string, text: string, advice: string): Promise<void>
}

/** What one answer of a model took, and for what. */
export interface Expense {
  model: string | undefined
  spent: NonNullable<Usage['spent']>
  task: string | undefined
}

const GO_ON = 'orc resume AGENT lets one go on by the same sum.'

/** What agents and the service itself spend on models, and the caps on it. The service spends as `orchestrator`. */
export function createSpending({ store, team, isHeld, hold, notify }: SpendingOptions) {
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

  /** With what this answer adds: the one that goes over is paid for already, the next is not made. */
  async function checkCaps(tx: Tx, agent: string, cost: number) {
    const { perAgent, total: most } = team().config.limits.spend
    const mine = ungranted(agent) + cost
    if (perAgent !== undefined && mine >= perAgent) {
      const reason = `${agent} spent ${mine.toFixed(2)} of ${perAgent} (limits.spend.per_agent)`
      if (agent === ORCHESTRATOR) await stopOwnCalls(tx, mine - cost < perAgent, reason)
      else if (!isHeld(agent)) {
        await pause(tx, agent, reason)
        await notify(tx, agent, `${agent} is paused: ${reason}`, GO_ON)
      } else if (mine - cost < perAgent) await noteHeld(tx, agent, reason)
    }
    const all = total + cost - totalGranted
    if (most !== undefined && all >= most) {
      const reason = `the team spent ${all.toFixed(2)} of ${most} (limits.spend.total)`
      const going = team().config.agents.filter((one) => one.runtime !== 'none' && !isHeld(one.name))
      for (const one of going) await pause(tx, one.name, reason)
      if (going.length > 0 || all - cost < most)
        await notify(tx, agent, `All agents are paused: ${reason}`, GO_ON)
    }
  }

  /** Paused for another reason: whoever lets it go on knows that it grants the sum again. */
  async function noteHeld(tx: Tx, agent: string, reason: string) {
    noteCap(tx, agent, `${agent} stays paused: ${reason}`, reason)
    await notify(tx, agent, `${agent}, which is paused, has reached its cap: ${reason}`, GO_ON)
  }

  async function stopOwnCalls(tx: Tx, isFirst: boolean, reason: string) {
    if (!isFirst) return
    const advice = 'Claims are left to their delegators until limits.spend.per_agent is raised.'
    await notify(tx, ORCHESTRATOR, `The service asks no model any more: ${reason}`, advice)
  }

  async function pause(tx: Tx, agent: string, reason: string) {
    await setPaused(tx, agent, true)
    noteCap(tx, agent, `${agent} is paused: ${reason}`, reason)
    tx.afterCommit(() => hold(agent))
  }

  function noteCap(tx: Tx, agent: string, text: string, reason: string) {
    const data = { agent, reason }
    tx.audit({ type: 'spend.capped', class: 'internal', actor: ORCHESTRATOR, subject: agent, text, data })
  }

  return {
    add,
    of: (agent: string) => spent.get(agent) ?? 0,
    /** Whether a cap keeps the service from calling models itself. */
    isCapped(): boolean {
      const { perAgent, total: most } = team().config.limits.spend
      if (perAgent !== undefined && ungranted(ORCHESTRATOR) >= perAgent) return true
      return most !== undefined && total - totalGranted >= most
    },
    async open() {
      for (const row of await readSpent(store)) {
        spent.set(row.agent, row.cost)
        total += row.cost
      }
      for (const row of await readSessions(store)) granted.set(row.agent, row.granted)
      totalGranted = [...granted.values()].reduce((sum, one) => sum + one, 0)
    },
    /** A person lets the agent go on: its cap counts from here. */
    async grant(tx: Tx, agent: string) {
      const now = spent.get(agent) ?? 0
      await grantSpending(tx, agent, now)
      tx.afterCommit(() => {
        totalGranted += now - (granted.get(agent) ?? 0)
        granted.set(agent, now)
      })
    },
  }
}
