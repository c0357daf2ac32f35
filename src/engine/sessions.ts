import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { AgentConfig } from '../config.ts'
import { ORCHESTRATOR, type SessionState } from '../model/agent.ts'
import type { Action, SaidCommand } from '../model/command.ts'
import { AppError, asAppError, reasonOf } from '../model/errors.ts'
import { formatId, parseId } from '../model/identifier.ts'
import { errorReceipt, type Receipt } from '../model/receipt.ts'
import { within } from '../runtimes/clock.ts'
import { NOT_IDLE } from '../runtimes/guard.ts'
import type {
  AgentStart,
  CommandAnswer,
  Credentials,
  Runtime,
  Session,
  SessionPort,
} from '../runtimes/runtime.ts'
import { readAgents, registerAgent, setSession } from '../store/agents.ts'
import {
  beginSession,
  forgetKept,
  readSession,
  readSessions,
  type SessionRow,
  setSessionToken,
  setWanted,
} from '../store/sessions.ts'
import type { Store } from '../store/store.ts'
import { type Attendant, createAttendant } from './attendant.ts'
import { type Answer, handedOutBy, type Listener } from './listener.ts'
import type { Mailroom } from './mailroom.ts'
import type { Meter } from './meter.ts'
import type { PermissionDesk } from './permissions.ts'
import type { Clock, Log } from './surroundings.ts'
import type { Team } from './team.ts'
import type { Tokens } from './tokens.ts'

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
  setPaused(agent: string, paused: boolean): void
  isPaused(agent: string): boolean
  /** A hook of the agent's program calls. */
  hook(agent: string, event: unknown, gone: AbortSignal): Promise<unknown>
  /** The running session, for those who look at it. */
  session(agent: string): Session | undefined
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
  isBusy: boolean
  /** Undefined when there was no turn to end. */
  done: Promise<Interrupted | undefined>
}

/** Who wants to know of the turns that agents take. Nothing of it may fail. */
export interface SessionWatch {
  turnBegan(agent: string): Promise<void>
  turnEnded(agent: string, lastWords: string): Promise<void>
  exited(agent: string, why: string): Promise<void>
  /** It could not be started. */
  unreachable(agent: string, why: string): Promise<void>
}

export interface SessionsOptions {
  store: Store
  mailroom: Mailroom
  permissions: PermissionDesk
  meter: Meter
  tokens: Tokens
  clock: Clock
  log: Log
  runtimes: readonly Runtime[]
  team: () => Team
  prompt: (agent: string, nonce: string) => string
  /** Reads commands out of what an agent says, has them carried out, and gives the answers. */
  listen: (agent: string, nonce: string, answer: (answer: Answer) => Promise<void>) => Listener
  watch: SessionWatch
  isHalted(): boolean
  /** Carries out what an agent says by a tool. */
  act: (agent: string, said: SaidCommand, key: string) => Promise<Receipt>
}

interface Running {
  /** Undefined before its rows are read. */
  attendant?: Attendant
  readonly started: Promise<Session | undefined>
  /** All that its start does is done. */
  readonly settled: Promise<void>
  /** Calls its start off; of no effect on one that is there. */
  readonly gone: AbortController
}

/** As it is stored: whose notes they are, and the notes. */
interface Kept {
  runtime: string
  value: unknown
}

const NONCE_BYTES = 9
/** How long an end waits for a start that was called off, or that the service leaves behind. */
const STARTING_MS = 10_000

export function createSessions(options: SessionsOptions): Sessions {
  const { store, mailroom, log, team, tokens } = options
  const running = new Map<string, Running>()
  /** Sessions on their way out. */
  const ending = new Map<string, Promise<unknown>>()
  const paused = new Set<string>()
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
  const runtimeOf = (name: string): Runtime | undefined => runtimes.get(agentConfig(name)?.runtime ?? 'none')

  /** `found`: only if it runs already. */
  async function start(name: string, conversation: 'last' | 'new' | 'found' = 'last') {
    const config = agentConfig(name)
    const runtime = runtimeOf(name)
    if (config === undefined || runtime === undefined || running.has(name) || leaving) return
    if (options.isHalted() && conversation !== 'found') {
      postponed.add(name)
      return
    }
    const { promise, resolve } = Promise.withResolvers<Session | undefined>()
    const { promise: settled, resolve: settle } = Promise.withResolvers<void>()
    const gone = new AbortController()
    const entry: Running = { started: promise, settled, gone }
    // Before the first await, or two requests at once would start it twice.
    running.set(name, entry)
    let session: Session | undefined
    try {
      // Or what is about to end would be found running.
      await ending.get(name)
      const row = await openSession(name, conversation)
      const attendant = attend(entry, config, runtime, row)
      entry.attendant = attendant
      await options.permissions.begin(name)
      await record(
        name,
        'initializing',
        row.kept === null ? 'a new conversation begins' : 'its session is taken up',
      )
      const kept = await keptFor(runtime, row)
      gone.signal.throwIfAborted()
      session = await startOrFind(
        runtime,
        {
          name,
          program: config.program,
          settings: config.with,
          prompt: options.prompt(name, row.nonce),
          cwd: config.folder,
          folder: join(team().config.stateFolder, 'agents', name),
          kept,
          nonce: row.nonce,
          gone: gone.signal,
          async credentials() {
            gone.signal.throwIfAborted()
            return await issueToken(name)
          },
          command: (said, key) => act(name, said, key),
        },
        attendant.port,
        conversation === 'found',
      )
      if (session === undefined) {
        if (running.get(name) === entry) running.delete(name)
        attendant.dismiss()
        await record(name, 'exited', 'not started: everything is stopped')
        return
      }
      resolve(session)
      if (running.get(name) === entry && !leaving) await attendant.attend(session)
      else await endUnwanted(name, session)
      // It may have begun a turn while the halt came.
      if (options.isHalted()) void attendant.halt(ORCHESTRATOR)
    } catch (error) {
      if (running.get(name) === entry) running.delete(name)
      entry.attendant?.dismiss()
      // Nobody attends it: where it can go on, the next start finds it.
      await session?.leave().catch(() => {})
      if (gone.signal.aborted) return await endHalfStarted(name)
      log.error({ agent: name, err: error }, 'the agent could not be started')
      await record(name, 'error', `could not be started: ${explained(error)}`)
      await options.watch.unreachable(name, `it could not be started: ${explained(error)}`)
    } finally {
      resolve(undefined)
      settle()
    }
  }

  /** In a halt nothing is started; what runs already is found again, so that it can be seen and stopped. */
  async function startOrFind(runtime: Runtime, agent: AgentStart, port: SessionPort, onlyIfFound: boolean) {
    if (!onlyIfFound && !options.isHalted()) return await runtime.start(agent, port)
    const found = agent.kept === undefined ? undefined : await runtime.find?.(agent, port)
    if (found === undefined && !agent.gone?.aborted) postponed.add(agent.name)
    return found
  }

  /** It was stopped while it started, or the service ends. */
  async function endUnwanted(name: string, session: Session) {
    await (leaving === 'leave' ? session.leave() : session.stop())
    await recordUnwanted(name)
  }

  /** What it kept before it started anything finds all that it has started. */
  async function endHalfStarted(name: string) {
    // The next start clears away what it finds, and what it keeps is its own.
    if (running.has(name)) return
    try {
      const row = await readSession(store, name)
      if (row?.kept != null) await endKept(name, row.kept)
      await recordUnwanted(name)
    } catch (error) {
      log.error({ agent: name, err: error }, 'a start that was called off did not end well')
    }
  }

  async function recordUnwanted(name: string) {
    if (running.has(name)) return
    const why = 'it was stopped while it started'
    await record(name, 'exited', why)
    if (!leaving) await options.watch.exited(name, why)
  }

  function attend(entry: Running, config: AgentConfig, runtime: Runtime, row: SessionRow): Attendant {
    const { name } = config
    // Not the row, which holds all that the session keeps.
    const { nonce } = row
    const attendant = createAttendant({
      name,
      store,
      mailroom,
      permissions: options.permissions,
      meter: options.meter,
      clock: options.clock,
      log,
      runtime: runtime.name,
      deliver: config.deliver,
      isPaused: () => paused.has(name),
      isHalted: options.isHalted,
      listen: (answer) => options.listen(name, nonce, answer),
      async changed(state, evidence) {
        if (state === 'exited' && running.get(name) === entry) running.delete(name)
        await record(name, state, evidence)
        if (state !== 'exited') return
        attendant.dismiss()
        // With the service, all of them end; their tasks do not.
        if (!leaving) await options.watch.exited(name, evidence)
      },
      turnBegan: () => void options.watch.turnBegan(name),
      turnEnded: (lastWords) => void options.watch.turnEnded(name, lastWords),
    })
    return attendant
  }

  async function openSession(name: string, conversation: 'last' | 'new' | 'found'): Promise<SessionRow> {
    if (conversation === 'new') await options.meter.begin(name)
    return await store.write(async (tx) => {
      const row = await readSession(tx, name)
      if (row === undefined || conversation === 'new') {
        await beginSession(tx, name, randomBytes(NONCE_BYTES).toString('base64url'))
      } else await setWanted(tx, name, true)
      return (await readSession(tx, name))!
    })
  }

  /** What a session of another runtime kept is of no use to this one, and what still runs of it ends. */
  async function keptFor(runtime: Runtime, { agent, kept }: SessionRow): Promise<unknown> {
    if (kept === null) return undefined
    const { runtime: keeper, value } = JSON.parse(kept) as Kept
    if (keeper === runtime.name) return value
    await discard(agent, kept)
    return undefined
  }

  /** What could not be followed, and so was never taken for running, may still run. */
  async function discardLeft(name: string) {
    const row = await readSession(store, name)
    if (row?.kept != null) await discard(name, row.kept)
  }

  async function discard(name: string, kept: string) {
    if (await endKept(name, kept)) await store.write((tx) => forgetKept(tx, name))
  }

  /** Its conversation can still be taken up. Says whether nothing of it runs any more. */
  async function endKept(name: string, kept: string): Promise<boolean> {
    const { runtime: keeper, value } = JSON.parse(kept) as Kept
    try {
      await runtimes.get(keeper)?.discard?.(value)
      return true
    } catch (error) {
      log.error({ agent: name, err: error }, 'what an earlier session left running could not be ended')
      return false
    }
  }

  /** One token a process: the one before it dies, so that what is left of an old process cannot speak. */
  async function issueToken(name: string): Promise<Credentials> {
    if (address === undefined) throw new Error('agents are started before the service listens')
    await revokeToken(name)
    const { id, token } = await tokens.mint(name)
    await store.write((tx) => setSessionToken(tx, name, parseId('tok', id)!))
    return { url: address, token }
  }

  async function act(name: string, said: SaidCommand, key: string): Promise<CommandAnswer> {
    const receipt = await options.act(name, said, key).catch((error: unknown) => {
      log.error({ agent: name, err: error, command: said.type.slice(0, 100) }, 'a command failed')
      return errorReceipt(asAppError(error))
    })
    return { receipt, handedOut: handedOutBy(said.type, receipt) }
  }

  async function revokeToken(name: string) {
    const row = await readSession(store, name)
    if (row?.token != null) await tokens.revoke(formatId('tok', row.token))
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
      entry === undefined ? undefined : end(name, entry, () => revokeToken(name)),
    ])
  }

  /** The next start waits for it, and for what is to be done before that. */
  async function end(name: string, entry: Running, then?: () => Promise<void>) {
    running.delete(name)
    entry.gone.abort(new Error('it was stopped'))
    const settled = within(options.clock, STARTING_MS, entry.settled)
    const ended = Promise.all([ending.get(name), endSession(name, entry), settled]).then(then)
    const quietly = ended.catch(() => {})
    ending.set(name, quietly)
    await ended
    if (ending.get(name) === quietly) ending.delete(name)
  }

  async function endSession(name: string, entry: Running) {
    try {
      await entry.attendant?.session()?.stop()
    } catch (error) {
      log.error({ agent: name, err: error }, 'the agent could not be stopped')
      await record(name, 'error', `could not be stopped: ${explained(error)}`)
    } finally {
      entry.attendant?.dismiss()
    }
  }

  async function record(name: string, session: SessionState, evidence: string) {
    if (closing) return
    try {
      await store.write(async (tx) => {
        await setSession(tx, name, session)
        tx.audit({
          type: 'session.changed',
          class: 'internal',
          actor: name,
          text: `${name} is ${session}: ${evidence}`,
          data: { agent: name, session, evidence },
        })
      })
    } catch (error) {
      log.error({ agent: name, err: error }, 'a change of state could not be stored')
    }
  }

  async function registerAll() {
    await store.write(async (tx) => {
      for (const agent of team().config.agents) await registerAgent(tx, agent.name, 'unknown')
    })
  }

  mailroom.onAccepted(async (tx, name) => (await running.get(name)?.attendant?.take(tx)) ?? false)

  /** Normal waits until the agent is idle; high is announced at once; urgent interrupts (C2). */
  mailroom.onMail((name, priority, from) => {
    running
      .get(name)
      ?.attendant?.mailCame(priority, from)
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
      else await discardLeft(name)
      if (orders.get(name) === mine) await start(name, 'new')
    },
    halt(by) {
      const isBusy = (name: string) => running.get(name)?.attendant?.session()?.state === 'busy'
      const atWork = [...running].filter(([name, { attendant }]) => isBusy(name) || attendant?.isGiven())
      for (const { attendant } of running.values()) attendant?.look()
      return atWork.map(([agent, { attendant }]) => ({
        agent,
        isBusy: isBusy(agent),
        done: attendant!.halt(by).then(
          (outcome) => (outcome === undefined ? undefined : { agent, ...outcome }),
          (error: unknown) => ({ agent, stopped: false, evidence: reasonOf(error) }),
        ),
      }))
    },
    goOn() {
      const names = [...postponed]
      postponed.clear()
      for (const name of names) void start(name)
      for (const { attendant } of running.values()) attendant?.look()
    },
    isPaused: (name) => paused.has(name),
    setPaused(name, hold) {
      mailroom.setHeld(name, hold)
      if (hold) paused.add(name)
      else paused.delete(name)
      running.get(name)?.attendant?.look()
    },
    async hook(name, event, gone) {
      const session = await running.get(name)?.started
      if (session?.hook === undefined) {
        throw new AppError('CONFLICT', `${name} is not run here, so that its hooks have nobody to tell`, {
          hint: `Start it with orc spawn ${name}.`,
        })
      }
      return await session.hook(event, gone)
    },
    session: (name) => running.get(name)?.attendant?.session(),
    turnBegan: (name) => running.get(name)?.attendant?.turnBegan(),
    waitsFor(name) {
      if (runtimeOf(name) === undefined) return undefined
      if (options.isHalted()) return 'everything is stopped'
      if (paused.has(name)) return NOT_IDLE.paused
      const entry = running.get(name)
      if (entry === undefined) return 'it is not running'
      const state = entry.attendant?.session()?.state ?? 'initializing'
      return state === 'idle' ? entry.attendant?.waitsFor() : NOT_IDLE[state]
    },
    async follow() {
      await registerAll()
      for (const [name, entry] of running) if (agentConfig(name) === undefined) await end(name, entry)
      // Only what is new: an agent that was stopped on purpose stays stopped.
      const added = team().config.agents.filter((agent) => !known.has(agent.name))
      known = new Set(team().names)
      await Promise.all(added.filter((agent) => agent.autostart).map((agent) => start(agent.name)))
    },
    async open() {
      await registerAll()
      known = new Set(team().names)
      for (const row of await readAgents(store)) {
        if (row.paused !== 1) continue
        paused.add(row.name)
        mailroom.setHeld(row.name, true)
      }
    },
    async begin(url) {
      address = url
      const rows = await readSessions(store)
      // An agent that was taken out of the team while the service was away does not go on in its terminal.
      const gone = rows.filter((row) => row.kept !== null && runtimeOf(row.agent) === undefined)
      await Promise.all(gone.map((row) => discard(row.agent, row.kept!)))
      const wanted = new Map(rows.map((row) => [row.agent, row.wanted === 1]))
      const starting = team().config.agents.filter((agent) => wanted.get(agent.name) ?? agent.autostart)
      await Promise.all(starting.map((agent) => start(agent.name, options.isHalted() ? 'found' : 'last')))
    },
    async close(how) {
      leaving = how
      const closed = [...running.values()].map(async (entry) => {
        if (how === 'end') entry.gone.abort(new Error('the service ends'))
        try {
          const session = entry.attendant?.session()
          await (how === 'leave' ? session?.leave() : session?.stop())
        } catch (error) {
          log.error({ err: error }, 'a session did not end well')
        }
        // One that is left behind is found again by what it keeps, and one that never gets there holds nobody up.
        await within(options.clock, STARTING_MS, entry.settled)
        entry.attendant?.dismiss()
      })
      await Promise.all([...closed, ...ending.values()])
      closing = true
      running.clear()
      for (const runtime of options.runtimes) await runtime.close?.()
    },
  }
}

function explained(error: unknown): string {
  return error instanceof AppError && error.hint !== undefined
    ? `${error.message}. ${error.hint}`
    : reasonOf(error)
}
