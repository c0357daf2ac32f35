/**
 * Starts, finds and ends the sessions of the team's agents. States of an agent with a runtime:
 *
 * - stopped: not in `running`. Left by `start` (a person, a task, autostart or a reload).
 * - starting: in `running`, without a session yet. Left when the runtime returns a session (running), when the start
 *   fails, or when `stop` or `close` cancels it (stopped).
 * - running: in `running`, with a session. Left when it exits by itself (stopped), or by `stop`, `reset`, `close` and a
 *   reload that removes the agent (ending).
 * - ending: in `ending`, no longer in `running`. The next start waits until it has ended.
 * - postponed: stopped, and to be started when the halt ends.
 *
 * `paused` is independent of these: a paused agent gets no deliveries in any state.
 */
import { within } from '../base/clock.ts'
import { AppError, reasonOf } from '../base/errors.ts'
import type { AgentConfig } from '../config/config.ts'
import { NOT_IDLE_REASON, type Runtime } from '../runtimes/runtime.ts'
import type { Sessions, SessionsOptions } from './sessions.ts'
import {
  type Conversation,
  createEarlierSessions,
  createSessionStart,
  createStateRecorder,
  describeError,
  type RecordState,
  type RunningAgent,
  revokeSessionToken,
} from './start-session.ts'
import { changeSession, readAgents, readSession, readSessions, registerAgent } from './store.ts'

/** Ending an agent waits this long for a start in progress to notice that it was cancelled. */
const START_CANCEL_MS = 10_000

export function createSessions(options: SessionsOptions): Sessions {
  const { store, mailboxes, log, team } = options
  const running = new Map<string, RunningAgent>()
  const ending = new Map<string, Promise<unknown>>()
  const paused = new Set<string>()
  const resumeListeners: ((agent: string) => void)[] = []
  const postponed = new Set<string>()
  const runtimes = new Map(options.runtimes.map((runtime) => [runtime.name, runtime]))
  let known: ReadonlySet<string> = new Set()
  let address: string | undefined
  let leaving: false | 'leave' | 'end' = false
  /** Counts stops and resets of an agent: a reset that a later stop overtakes does not start it again. */
  const orders = new Map<string, number>()
  let closing = false

  const agentConfig = (name: string): AgentConfig | undefined =>
    team().config.agents.find((one) => one.name === name)
  const writeState = createStateRecorder(store, log)
  const record: RecordState = async (...change) => (closing ? undefined : await writeState(...change))
  const earlier = createEarlierSessions(store, log, runtimes)
  const startSession = createSessionStart({
    ...options,
    ...{ running, ending, earlier, record },
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
    else await startSession(config, runtime, conversation)
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
      store.write((tx) => changeSession(tx, name, { wanted: 0 })),
      // Synchronously, so that a start requested right after this one waits for the end.
      entry === undefined ? undefined : end(name, entry, () => revokeSessionToken(options, name)),
    ])
  }

  /** The next start waits for the session's end and for `then`. */
  async function end(name: string, entry: RunningAgent, then?: () => Promise<void>) {
    running.delete(name)
    entry.delivery?.detach()
    entry.cancel?.abort(new Error('it was stopped'))
    const settled = within(options.clock, START_CANCEL_MS, entry.settled)
    const ended = Promise.all([ending.get(name), endSession(name, entry), settled]).then(then)
    const quietly = ended.catch(() => {})
    ending.set(name, quietly)
    await ended
    if (ending.get(name) === quietly) ending.delete(name)
  }

  async function endSession(name: string, entry: RunningAgent) {
    try {
      await entry.delivery?.session()?.stop()
    } catch (error) {
      log.error({ agent: name, err: error }, 'the agent could not be stopped')
      await record(name, 'error', `could not be stopped: ${describeError(error)}`)
    } finally {
      entry.delivery?.close()
    }
  }

  async function registerAll() {
    await store.write(async (tx) => {
      for (const agent of team().config.agents) registerAgent(tx, agent.name, 'unknown')
    })
  }

  return {
    impossible(name, action) {
      if (action === 'pause_session' || action === 'resume_session') return undefined
      if (runtimeOf(name) === undefined) {
        return {
          reason: `Orchub doesn't run ${name}`,
          hint: 'Start or stop its program yourself, or set its `runtime:` in orc.yaml.',
        }
      }
      if (options.isHalted() && action !== 'terminate_agent') {
        return {
          reason: `Everything is stopped, so ${name} cannot be started`,
          hint: 'Run `orc service go` to continue.',
        }
      }
      if (action === 'spawn_agent' && running.has(name)) {
        return {
          reason: `${name} is already running`,
          hint: 'Use reset_session to start a new conversation.',
        }
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
      // An agent that a person stopped stays stopped, unless it is meant to be started by its tasks.
      const isWanted = row === undefined ? config.autostart : row.wanted === 1
      if (config.onDemand || isWanted) await start(name)
    },
    async reset(name) {
      const mine = order(name)
      const entry = running.get(name)
      if (entry !== undefined) await end(name, entry)
      else await earlier.discard(name)
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
          (result) => (result === undefined ? undefined : { agent, ...result }),
          (error: unknown) => ({ agent, stopped: false, evidence: reasonOf(error) }),
        ),
      }))
    },
    endHalt() {
      const names = [...postponed]
      postponed.clear()
      for (const name of names) void start(name)
      for (const { delivery } of running.values()) delivery?.look()
    },
    interrupt: async (name, by) => await running.get(name)?.delivery?.interrupt(by),
    recentOutput: (name) => running.get(name)?.delivery?.recentOutput() ?? [],
    isPaused: (name) => paused.has(name),
    onResumed: (listener) => void resumeListeners.push(listener),
    setPaused(name, isPaused) {
      mailboxes.setHeld(name, isPaused)
      if (isPaused) paused.add(name)
      else paused.delete(name)
      running.get(name)?.delivery?.look()
      if (!isPaused) for (const onResumed of resumeListeners) onResumed(name)
    },
    async hook(name, event, signal) {
      const session = await running.get(name)?.started
      if (session?.hook === undefined) {
        throw new AppError('CONFLICT', `${name} isn't running, so its hook call cannot be handled`, {
          hint:
            agentConfig(name)?.runtime === 'none'
              ? `${name} has \`runtime: none\`; set another runtime in orc.yaml.`
              : `Start it with orc agent start ${name}.`,
        })
      }
      return await session.hook(event, signal)
    },
    toolsGiven(name) {
      void running.get(name)?.started.then(
        (session) => session?.onToolsListed?.(),
        // The caller of `start` handles the failure.
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
      // New agents only: one that was stopped on purpose stays stopped.
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
      // An agent removed from the team while the service was down may still run in its terminal.
      const removed = rows.filter((row) => row.kept !== null && runtimeOf(row.agent) === undefined)
      await Promise.all(removed.map((row) => earlier.discard(row.agent)))
      const wanted = new Map(rows.map((row) => [row.agent, row.wanted === 1]))
      const starting = team().config.agents.filter(
        (agent) => wanted.get(agent.name) ?? (agent.autostart && options.autostart),
      )
      // Reattach to agents that still run in any case; on-demand agents resume their work.
      const how = ({ onDemand }: AgentConfig) =>
        options.isHalted() || !(options.autostart || onDemand) ? 'found' : 'last'
      await Promise.all(starting.map((agent) => start(agent.name, how(agent))))
    },
    async close(how) {
      leaving = how
      const closed = [...running.values()].map(async (entry) => {
        if (how === 'end') entry.cancel?.abort(new Error('the service ends'))
        try {
          const session = entry.delivery?.session()
          await (how === 'leave' ? session?.leave() : session?.stop())
        } catch (error) {
          log.error({ err: error }, 'a session could not be ended')
        }
        // The next service finds a start that takes longer by its saved state.
        await within(options.clock, START_CANCEL_MS, entry.settled)
        entry.delivery?.close()
      })
      await Promise.all([...closed, ...ending.values()])
      closing = true
      running.clear()
      for (const runtime of options.runtimes) await runtime.close?.()
    },
  }
}
