import { within } from '../base/clock.ts'
import { AppError, reasonOf } from '../base/errors.ts'
import type { AgentConfig } from '../config/config.ts'
import type { SaidText } from '../delivery/recent-output.ts'
import type { Action } from '../protocol/command.ts'
import { NOT_IDLE_REASON } from '../runtimes/paste-guard.ts'
import type { Runtime, Session } from '../runtimes/runtime.ts'
import type { SessionsOptions } from './session-options.ts'
import { createLeftovers } from './sessions/leftovers.ts'
import { createPasses } from './sessions/pass.ts'
import { createRecord, explained, type RecordState } from './sessions/record.ts'
import type { Running } from './sessions/running.ts'
import { type Conversation, createStarting } from './sessions/starting.ts'
import { readAgents, registerAgent } from './store/agents.ts'
import { readSession, readSessions, setWanted } from './store/sessions.ts'

/** The agents that a runtime of ours runs: starting, finding again and ending them. */
export interface Sessions {
  /** Why an action cannot be done right now, if it cannot. */
  impossible(agent: string, action: Action): { reason: string; hint: string } | undefined
  /** Takes up its last conversation, or finds it running. */
  start(agent: string): Promise<void>
  /** Starts it if it is not running and may be started by what is sent to it. */
  wake(agent: string): Promise<void>
  /** It stays stopped until it is asked for. */
  stop(agent: string): Promise<void>
  /** A new conversation, with the role restored. */
  reset(agent: string): Promise<void>
  /**
   * Everything is halted: no agent is started any more, and those at work are interrupted. Gives them at once; what came
   * of it later.
   */
  halt(by: string): readonly Halting[]
  /** The halt is over: what was to be started meanwhile is started, and deliveries flow. */
  goOn(): void
  /** A person ends an agent's turn. Undefined: it had none. */
  interrupt(agent: string, by: string): Promise<{ stopped: boolean; evidence: string } | undefined>
  /** The last that an agent said since the service found or started it, oldest first. */
  recentOutput(agent: string): readonly SaidText[]
  setPaused(agent: string, paused: boolean): void
  /** Calls the listener whenever a paused agent is resumed. */
  onResumed(listener: (agent: string) => void): void
  isPaused(agent: string): boolean
  /** A hook of the agent's program calls. */
  hook(agent: string, event: unknown, gone: AbortSignal): Promise<unknown>
  /** The agent's program took the list of our tools over MCP. */
  toolsGiven(agent: string): void
  /** The running session, for those who look at it. */
  session(agent: string): Session | undefined
  /** It is run by a runtime, and on its way: the service has not begun, or it is being started. */
  isComingUp(agent: string): boolean
  /** It works, or stands before a dialog in the middle of its work: there is a turn to end. */
  isInTurn(agent: string): boolean
  /** When its current turn began, or its last one. */
  turnBegan(agent: string): number | undefined
  /** What a message that is queued for it waits for. Undefined for an agent that asks for its messages itself. */
  waitsFor(agent: string): string | undefined
  /** Brings the team's rows up to date. */
  open(): Promise<void>
  /** Starts what starts by itself, and what ran when the service ended. The address is for the agents. */
  begin(url: string): Promise<void>
  /** After a reload: new agents are registered and started, those no longer in the team are stopped. */
  follow(): Promise<void>
  /** `leave`: agents that can outlive the service go on, and are found again. `end`: all are stopped. */
  close(how: 'leave' | 'end'): Promise<void>
}

/** Whether an agent's turn truly ended, and how we know. */
export interface Interrupted {
  agent: string
  stopped: boolean
  evidence: string
}

export interface Halting {
  agent: string
  /** Otherwise something is just being given to it. */
  isInTurn: boolean
  /** Undefined when there was no turn to end. */
  done: Promise<Interrupted | undefined>
}

/** How long an end waits for a start that was called off, or that the service leaves behind. */
const STARTING_MS = 10_000

export function createSessions(options: SessionsOptions): Sessions {
  const { store, mailboxes, log, team } = options
  const running = new Map<string, Running>()
  /** Sessions on their way out. */
  const ending = new Map<string, Promise<unknown>>()
  const paused = new Set<string>()
  const resumeListeners: ((agent: string) => void)[] = []
  /** To be started when a halt is over. */
  const postponed = new Set<string>()
  const runtimes = new Map(options.runtimes.map((runtime) => [runtime.name, runtime]))
  let known: ReadonlySet<string> = new Set()
  let address: string | undefined
  let leaving: false | 'leave' | 'end' = false
  /** What was ordered last: a reset that is overtaken by a stop does not start again. */
  const orders = new Map<string, number>()
  let closing = false

  const agentConfig = (name: string): AgentConfig | undefined =>
    team().config.agents.find((one) => one.name === name)
  const passes = createPasses(store, options.tokens)
  const writeDown = createRecord(store, log)
  const record: RecordState = async (...change) => (closing ? undefined : await writeDown(...change))
  const leftovers = createLeftovers(store, log, runtimes)
  const bringUp = createStarting({
    ...options,
    ...{ running, ending, leftovers, passes, record },
    isPaused: (name) => paused.has(name),
    leaving: () => leaving,
    address: () => address,
    postpone: (name) => void postponed.add(name),
  })
  const runtimeOf = (name: string): Runtime | undefined => runtimes.get(agentConfig(name)?.runtime ?? 'none')

  async function start(name: string, conversation: Conversation = 'last') {
    const config = agentConfig(name)
    const runtime = runtimeOf(name)
    if (config === undefined || runtime === undefined || running.has(name) || leaving) return
    if (options.isHalted() && conversation !== 'found') postponed.add(name)
    else await bringUp(config, runtime, conversation)
  }

  function order(name: string): number {
    const number = (orders.get(name) ?? 0) + 1
    orders.set(name, number)
    return number
  }

  async function stop(name: string) {
    order(name)
    postponed.delete(name)
    const entry = running.get(name)
    await Promise.all([
      store.write((tx) => setWanted(tx, name, false)),
      // At once, so that a start that is asked for now comes after it.
      entry === undefined ? undefined : end(name, entry, () => passes.revoke(name)),
    ])
  }

  /** The next start waits for it, and for what is to be done before that. */
  async function end(name: string, entry: Running, then?: () => Promise<void>) {
    running.delete(name)
    entry.gone?.abort(new Error('it was stopped'))
    const settled = within(options.clock, STARTING_MS, entry.settled)
    const ended = Promise.all([ending.get(name), endSession(name, entry), settled]).then(then)
    const quietly = ended.catch(() => {})
    ending.set(name, quietly)
    await ended
    if (ending.get(name) === quietly) ending.delete(name)
  }

  async function endSession(name: string, entry: Running) {
    try {
      await entry.delivery?.session()?.stop()
    } catch (error) {
      log.error({ agent: name, err: error }, 'the agent could not be stopped')
      await record(name, 'error', `could not be stopped: ${explained(error)}`)
    } finally {
      entry.delivery?.close()
    }
  }

  async function registerAll() {
    await store.write(async (tx) => {
      for (const agent of team().config.agents) await registerAgent(tx, agent.name, 'unknown')
    })
  }

  mailboxes.onAccepted(async (tx, name) => (await running.get(name)?.delivery?.reserve(tx)) ?? false)

  /** Normal waits until the agent is idle; high is announced at once; urgent interrupts (C2). */
  mailboxes.onMail((name, priority, from) => {
    running
      .get(name)
      ?.delivery?.onMail(priority, from)
      .catch((error: unknown) => log.error({ agent: name, err: error }, 'mail was not announced'))
  })

  return {
    impossible(name, action) {
      if (action === 'pause_session' || action === 'resume_session') return undefined
      if (runtimeOf(name) === undefined) {
        return {
          reason: `${name} is run by no runtime of ours, so that it cannot be started or stopped here`,
          hint: 'Say `runtime:` for it in orc.yaml, or start and stop its program yourself.',
        }
      }
      if (options.isHalted() && action !== 'terminate_agent') {
        return {
          reason: `everything is stopped, so that ${name} is not started`,
          hint: 'orc go lets everything go on.',
        }
      }
      if (action === 'spawn_agent' && running.has(name)) {
        return { reason: `${name} is running already`, hint: 'Use reset_session to start it afresh.' }
      }
      if (action === 'terminate_agent' && !running.has(name) && !ending.has(name)) {
        return { reason: `${name} is not running`, hint: 'Use spawn_agent to start it.' }
      }
      return undefined
    },
    start,
    stop,
    async wake(name) {
      const config = agentConfig(name)
      if (config === undefined || config.runtime === 'none') return
      if (running.has(name) || address === undefined) return
      const row = await readSession(store, name)
      // What a person stopped stays stopped, unless it is there to be started by its tasks.
      const isWanted = row === undefined ? config.autostart : row.wanted === 1
      if (config.onDemand || isWanted) await start(name)
    },
    async reset(name) {
      const mine = order(name)
      const entry = running.get(name)
      if (entry !== undefined) await end(name, entry)
      else await leftovers.discard(name)
      if (orders.get(name) === mine) await start(name, 'new')
    },
    halt(by) {
      const atWork = [...running].filter(
        ([, { delivery }]) => delivery?.isInTurn() || delivery?.isHandingOver(),
      )
      for (const { delivery } of running.values()) delivery?.look()
      return atWork.map(([agent, { delivery }]) => ({
        agent,
        isInTurn: delivery!.isInTurn(),
        done: delivery!.halt(by).then(
          (outcome) => (outcome === undefined ? undefined : { agent, ...outcome }),
          (error: unknown) => ({ agent, stopped: false, evidence: reasonOf(error) }),
        ),
      }))
    },
    goOn() {
      const names = [...postponed]
      postponed.clear()
      for (const name of names) void start(name)
      for (const { delivery } of running.values()) delivery?.look()
    },
    interrupt: async (name, by) => await running.get(name)?.delivery?.interrupt(by),
    recentOutput: (name) => running.get(name)?.delivery?.recentOutput() ?? [],
    isPaused: (name) => paused.has(name),
    setPaused(name, hold) {
      mailboxes.setHeld(name, hold)
      if (hold) paused.add(name)
      else paused.delete(name)
      running.get(name)?.delivery?.look()
      if (!hold) for (const resumed of resumeListeners) resumed(name)
    },
    onResumed: (listener) => void resumeListeners.push(listener),
    async hook(name, event, gone) {
      const session = await running.get(name)?.started
      if (session?.hook === undefined) {
        throw new AppError('CONFLICT', `${name} is not run here, so that its hooks have nobody to tell`, {
          hint:
            agentConfig(name)?.runtime === 'none'
              ? `${name} has runtime none: give it a runtime in orc.yaml to have it run here.`
              : `Start it with orc spawn ${name}.`,
        })
      }
      return await session.hook(event, gone)
    },
    toolsGiven(name) {
      void running.get(name)?.started.then(
        (session) => session?.onToolsListed?.(),
        // Whoever starts it hears of that.
        () => {},
      )
    },
    session: (name) => running.get(name)?.delivery?.session(),
    isComingUp(name) {
      if (runtimeOf(name) === undefined) return false
      const entry = running.get(name)
      if (entry === undefined) return address === undefined
      return (entry.delivery?.session()?.state ?? 'initializing') === 'initializing'
    },
    isInTurn: (name) => running.get(name)?.delivery?.isInTurn() ?? false,
    turnBegan: (name) => running.get(name)?.delivery?.turnBegan(),
    waitsFor(name) {
      if (runtimeOf(name) === undefined) return undefined
      if (options.isHalted()) return 'everything is stopped'
      if (paused.has(name)) return NOT_IDLE_REASON.paused
      const entry = running.get(name)
      if (entry === undefined) return 'it is not running'
      const state = entry.delivery?.session()?.state ?? 'initializing'
      return state === 'idle' ? entry.delivery?.obstacle() : NOT_IDLE_REASON[state]
    },
    async follow() {
      await registerAll()
      for (const [name, entry] of running) if (agentConfig(name) === undefined) await end(name, entry)
      // Only what is new: an agent that was stopped on purpose stays stopped.
      const added = team().config.agents.filter((agent) => !known.has(agent.name))
      known = new Set(team().names)
      const starting = added.filter((agent) => agent.autostart && options.autostart)
      await Promise.all(starting.map((agent) => start(agent.name)))
    },
    async open() {
      await registerAll()
      known = new Set(team().names)
      for (const row of await readAgents(store)) {
        if (row.paused !== 1) continue
        paused.add(row.name)
        mailboxes.setHeld(row.name, true)
      }
    },
    async begin(url) {
      address = url
      const rows = await readSessions(store)
      // An agent that was taken out of the team while the service was away does not go on in its terminal.
      const gone = rows.filter((row) => row.kept !== null && runtimeOf(row.agent) === undefined)
      await Promise.all(gone.map((row) => leftovers.discard(row.agent)))
      const wanted = new Map(rows.map((row) => [row.agent, row.wanted === 1]))
      const starting = team().config.agents.filter(
        (agent) => wanted.get(agent.name) ?? (agent.autostart && options.autostart),
      )
      // What still runs is found again in any case; those who are there for one piece of work go on with it.
      const how = ({ onDemand }: AgentConfig) =>
        options.isHalted() || !(options.autostart || onDemand) ? 'found' : 'last'
      await Promise.all(starting.map((agent) => start(agent.name, how(agent))))
    },
    async close(how) {
      leaving = how
      const closed = [...running.values()].map(async (entry) => {
        if (how === 'end') entry.gone?.abort(new Error('the service ends'))
        try {
          const session = entry.delivery?.session()
          await (how === 'leave' ? session?.leave() : session?.stop())
        } catch (error) {
          log.error({ err: error }, 'a session did not end well')
        }
        // One that is left behind is found again by what it keeps, and one that never gets there holds nobody up.
        await within(options.clock, STARTING_MS, entry.settled)
        entry.delivery?.close()
      })
      await Promise.all([...closed, ...ending.values()])
      closing = true
      running.clear()
      for (const runtime of options.runtimes) await runtime.close?.()
    },
  }
}
