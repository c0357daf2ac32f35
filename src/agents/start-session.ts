import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { ORCHESTRATOR, type SessionState } from '../base/agent.ts'
import { AppError, asAppError, reasonOf } from '../base/errors.ts'
import { formatId, parseId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import type { AgentConfig } from '../config/config.ts'
import {
  type AgentDelivery,
  createAgentDelivery,
  markUnansweredUncertain,
} from '../delivery/agent-delivery.ts'
import { handedOutBy } from '../delivery/listener.ts'
import type { RawCommand } from '../protocol/command.ts'
import { errorReceipt } from '../protocol/receipt.ts'
import type { AgentStart, CommandResult, Runtime, Session, SessionPort } from '../runtimes/runtime.ts'
import type { Store } from '../store/store.ts'
import type { SessionsOptions } from './sessions.ts'
import { beginSession, changeSession, readAgent, readSession, type SessionRow, setSession } from './store.ts'

/**
 * Starts one agent. The steps, in order: wait for its previous session to end, read its rows, open the delivery to it,
 * discard state of another runtime, start or reattach through the runtime, begin deliveries. `RunningAgent.cancel` cancels
 * a start at any step; what the runtime has started by then is ended.
 */

/** `last`: resume the conversation, or reattach. `found`: reattach only, start nothing. */
export type Conversation = 'last' | 'new' | 'found'

/** An agent that runs or is starting. */
export interface RunningAgent {
  /** Undefined before its rows are read. */
  delivery: AgentDelivery | undefined
  readonly started: Promise<Session | undefined>
  /** Resolves when its start has succeeded, failed or been cancelled. */
  readonly settled: Promise<void>
  /** Cancels its start; undefined once the start is over. */
  cancel: AbortController | undefined
  /** A process was started for it; otherwise it was found running. */
  isNew: boolean
}

interface SessionStartOptions extends SessionsOptions {
  readonly running: Map<string, RunningAgent>
  readonly ending: ReadonlyMap<string, Promise<unknown>>
  readonly earlier: EarlierSessions
  readonly record: RecordState
  isPaused(agent: string): boolean
  /** How the service ends, once it does. */
  leaving(): false | 'leave' | 'end'
  address(): string | undefined
  /** Starts the agent when the halt ends. */
  postpone(agent: string): void
}

const NONCE_BYTES = 9

/** The returned function never rejects: it stores and logs failures. */
export function createSessionStart(options: SessionStartOptions) {
  const { store, log, running, earlier, record } = options
  /**
   * Agents that exited by themselves. Their last output may still be read, so their resources are released at the next
   * start only.
   */
  const exited = new Map<string, AgentDelivery>()

  async function start(config: AgentConfig, runtime: Runtime, conversation: Conversation) {
    const { name } = config
    const { promise, resolve } = Promise.withResolvers<Session | undefined>()
    const { promise: settled, resolve: settle } = Promise.withResolvers<void>()
    const cancel = new AbortController()
    const entry: RunningAgent = { delivery: undefined, started: promise, settled, cancel, isNew: false }
    // Before the first await: two concurrent requests must not start it twice.
    running.set(name, entry)
    let session: Session | undefined
    try {
      // Otherwise the runtime could reattach to a session that is about to end.
      await options.ending.get(name)
      await releaseExited(name)
      const wasInTurn = (await readAgent(store, name))?.in_turn === 1
      const row = await openSession(name, conversation)
      const delivery = openDelivery(entry, config, runtime, row, wasInTurn)
      entry.delivery = delivery
      await options.permissions.begin(name)
      const how = row.kept === null ? 'starting a new conversation' : 'resuming its session'
      await record(name, 'initializing', how)
      const savedState = await earlier.savedStateFor(runtime, row)
      cancel.signal.throwIfAborted()
      const agent = agentStart(entry, config, row, savedState)
      session = await startOrFind(runtime, agent, delivery.port, conversation === 'found')
      if (session === undefined) {
        if (running.get(name) === entry) running.delete(name)
        delivery.close()
        const why = options.isHalted() ? 'everything is stopped' : 'it starts on demand'
        await record(name, 'exited', `not started: ${why}`)
        return
      }
      resolve(session)
      if (running.get(name) === entry && !options.leaving()) await delivery.begin(session)
      else await endUnwanted(name, session, exited.get(name) === delivery)
      // The agent may have begun a turn when the halt came.
      if (options.isHalted()) void delivery.halt(ORCHESTRATOR)
    } catch (error) {
      if (running.get(name) === entry) running.delete(name)
      entry.delivery?.close()
      // If it can outlive this failure, the next start reattaches to it.
      await session?.leave().catch(() => {})
      if (cancel.signal.aborted) return await endHalfStarted(name)
      log.error({ agent: name, err: error }, 'the agent could not be started')
      await record(name, 'error', `could not be started: ${describeError(error)}`)
      await options.watch.unreachable(name, `it could not be started: ${describeError(error)}`)
    } finally {
      entry.cancel = undefined
      resolve(undefined)
      settle()
    }
  }

  async function releaseExited(name: string) {
    const session = exited.get(name)?.session()
    exited.delete(name)
    await session
      ?.leave()
      .catch((error: unknown) =>
        log.warn({ agent: name, err: error }, 'an exited session could not be released'),
      )
  }

  async function openSession(name: string, conversation: Conversation): Promise<SessionRow> {
    if (conversation === 'new') await options.usageTracker.begin(name)
    return await store.write(async (tx) => {
      const row = await readSession(tx, name)
      if (row === undefined || conversation === 'new') {
        beginSession(tx, name, randomBytes(NONCE_BYTES).toString('base64url'))
      } else changeSession(tx, name, { wanted: 1 })
      return (await readSession(tx, name))!
    })
  }

  function agentStart(
    entry: RunningAgent,
    config: AgentConfig,
    row: SessionRow,
    savedState: unknown,
  ): AgentStart {
    const { name } = config
    const { signal } = entry.cancel!
    return {
      name,
      program: config.program,
      settings: config.with,
      prompt: options.prompt(name, row.nonce),
      cwd: config.folder,
      folder: join(options.team().config.stateFolder, 'agents', name),
      savedState,
      nonce: row.nonce,
      signal,
      async credentials(process) {
        signal.throwIfAborted()
        entry.isNew = true
        await store.write((tx) => setSession(tx, name, 'initializing', false))
        const url = options.address()
        if (url === undefined) throw new Error('an agent is started before the service listens')
        // Before the process exists: if the service is killed right after its start, the next one finds it running.
        if (process?.isResumed) await markUnansweredUncertain(store, options.mailboxes, name)
        return { url, token: await issueSessionToken(options, name) }
      },
      command: (said, key) => act(name, said, key),
    }
  }

  async function act(name: string, said: RawCommand, key: string): Promise<CommandResult> {
    const receipt = await options.act(name, said, key).catch((error: unknown) => {
      log.error({ agent: name, err: error, command: said.type.slice(0, 100) }, 'a command failed')
      return errorReceipt(asAppError(error))
    })
    return { receipt, handedOut: handedOutBy(said.type, receipt) }
  }

  function openDelivery(
    entry: RunningAgent,
    config: AgentConfig,
    runtime: Runtime,
    // The closures below must not hold the row: its saved state can be large.
    { nonce }: SessionRow,
    wasInTurn: boolean,
  ): AgentDelivery {
    const { name } = config
    const { mailboxes, permissions, usageTracker, clock, watch } = options
    const delivery = createAgentDelivery({
      ...{ name, store, mailboxes, permissions, clock, log },
      runtime: runtime.name,
      deliver: config.deliver,
      isPaused: () => options.isPaused(name),
      isHalted: options.isHalted,
      wasInTurn: () => wasInTurn && !entry.isNew,
      listen: (respond) => options.listen(name, nonce, respond),
      onUsage: (usage) => usageTracker.used(name, usage),
      save: (value) =>
        store.write((tx) =>
          changeSession(tx, name, { kept: JSON.stringify({ runtime: runtime.name, value }) }),
        ),
      async onChanged(state, evidence, isInTurn) {
        if (state === 'exited' && running.get(name) === entry) {
          running.delete(name)
          exited.set(name, delivery)
        }
        await record(name, state, evidence, isInTurn)
        if (state !== 'exited') return
        delivery.close()
        // When the service ends, all sessions end, but their tasks continue with the next service.
        if (!options.leaving()) await watch.exited(name, evidence)
      },
      onTurnBegan: () => void watch.turnBegan(name),
      onTurnEnded: (lastWords) => void watch.turnEnded(name, lastWords),
    })
    return delivery
  }

  /** During a halt no agent is started, but running ones are found, so that they can be seen and stopped. */
  async function startOrFind(runtime: Runtime, agent: AgentStart, port: SessionPort, onlyIfFound: boolean) {
    if (!onlyIfFound && !options.isHalted()) return await runtime.start(agent, port)
    const found = agent.savedState === undefined ? undefined : await runtime.find?.(agent, port)
    if (found === undefined && options.isHalted() && !agent.signal?.aborted) options.postpone(agent.name)
    return found
  }

  /**
   * The agent was stopped while it started, or the service ends. `isEndRecorded`: it exited by itself, and the reason is
   * stored already.
   */
  async function endUnwanted(name: string, session: Session, isEndRecorded: boolean) {
    await (options.leaving() === 'leave' ? session.leave() : session.stop())
    if (!isEndRecorded) await recordCancelled(name)
  }

  /** Ends the processes of a cancelled start, found by the state that the runtime saved before it started them. */
  async function endHalfStarted(name: string) {
    // A newer start has ended them itself, and the saved state is now its own.
    if (running.has(name)) return
    try {
      await earlier.end(name)
      await recordCancelled(name)
    } catch (error) {
      log.error({ agent: name, err: error }, 'a cancelled start could not be ended')
    }
  }

  async function recordCancelled(name: string) {
    if (running.has(name)) return
    const why = 'it was stopped while it started'
    await record(name, 'exited', why)
    if (!options.leaving()) await options.watch.exited(name, why)
  }

  return start
}

// ── The token of an agent's process ──────────────────────────────────────────────────────────────

type SessionTokenStores = Pick<SessionsOptions, 'store' | 'tokens'>

export async function revokeSessionToken({ store, tokens }: SessionTokenStores, agent: string) {
  const row = await readSession(store, agent)
  if (row?.token != null) await tokens.revoke(formatId('tok', row.token))
}

/** Revokes the token of the agent's previous process, so that a leftover of it cannot act any more. */
async function issueSessionToken(stores: SessionTokenStores, agent: string): Promise<string> {
  await revokeSessionToken(stores, agent)
  const { id, token } = await stores.tokens.mint(agent)
  await stores.store.write((tx) => changeSession(tx, agent, { token: parseId('tok', id)! }))
  return token
}

// ── The record of state changes ──────────────────────────────────────────────────────────────────

/** Stores and audits a change of an agent's session. Omitting `isInTurn` keeps the stored value. Never rejects. */
export type RecordState = (
  agent: string,
  session: SessionState,
  evidence: string,
  isInTurn?: boolean,
) => Promise<void>

export function createStateRecorder(store: Store, log: Log): RecordState {
  return async (agent, session, evidence, isInTurn) => {
    try {
      await store.write(async (tx) => {
        setSession(tx, agent, session, isInTurn)
        tx.audit({
          type: 'session.changed',
          class: 'internal',
          actor: agent,
          text: `${agent} is ${session}: ${evidence}`,
          data: { agent, session, evidence },
        })
      })
    } catch (error) {
      log.error({ agent, err: error }, 'a state change could not be stored')
    }
  }
}

export function describeError(error: unknown): string {
  return error instanceof AppError && error.hint !== undefined
    ? `${error.message}. ${error.hint}`
    : reasonOf(error)
}

/** Saved state of earlier sessions, and the processes that may still run from them. */
interface EarlierSessions {
  /** The state saved for this runtime. State of another runtime is useless to it, so that session is ended. */
  savedStateFor(runtime: Runtime, row: SessionRow): Promise<unknown>
  /** Ends the agent's processes. Its conversation can still be resumed. */
  end(agent: string): Promise<void>
  /** Ends the agent's processes and forgets its saved state. */
  discard(agent: string): Promise<void>
}

/** As stored in `sessions.kept`. */
interface StoredState {
  runtime: string
  value: unknown
}

export function createEarlierSessions(
  store: Store,
  log: Log,
  runtimes: ReadonlyMap<string, Runtime>,
): EarlierSessions {
  async function discardState(agent: string, stored: string) {
    if (await endProcesses(agent, stored)) await store.write((tx) => changeSession(tx, agent, { kept: null }))
  }

  /** Returns false if a process may still run. */
  async function endProcesses(agent: string, stored: string): Promise<boolean> {
    const { runtime, value } = JSON.parse(stored) as StoredState
    try {
      await runtimes.get(runtime)?.discard?.(value)
      return true
    } catch (error) {
      log.error({ agent, err: error }, 'processes of an earlier session could not be ended')
      return false
    }
  }

  const storedStateOf = async (agent: string) => (await readSession(store, agent))?.kept ?? undefined

  return {
    async savedStateFor(runtime, { agent, kept }) {
      if (kept === null) return undefined
      const { runtime: savedBy, value } = JSON.parse(kept) as StoredState
      if (savedBy === runtime.name) return value
      await discardState(agent, kept)
      return undefined
    },
    async end(agent) {
      const stored = await storedStateOf(agent)
      if (stored !== undefined) await endProcesses(agent, stored)
    },
    async discard(agent) {
      const stored = await storedStateOf(agent)
      if (stored !== undefined) await discardState(agent, stored)
    },
  }
}
