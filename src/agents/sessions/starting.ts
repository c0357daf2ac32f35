import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { ORCHESTRATOR } from '../../base/agent.ts'
import { asAppError } from '../../base/errors.ts'
import type { AgentConfig } from '../../config/config.ts'
import { type AgentDelivery, createAgentDelivery } from '../../delivery/delivery.ts'
import { handedOutBy } from '../../delivery/listener.ts'
import { doubtUnanswered } from '../../delivery/turns.ts'
import type { SaidCommand } from '../../protocol/command.ts'
import { errorReceipt } from '../../protocol/receipt.ts'
import type { AgentStart, CommandResult, Runtime, Session, SessionPort } from '../../runtimes/runtime.ts'
import type { SessionsOptions } from '../session-options.ts'
import { readAgent, setSession } from '../store/agents.ts'
import { beginSession, keepInSession, readSession, type SessionRow, setWanted } from '../store/sessions.ts'
import type { Leftovers } from './leftovers.ts'
import type { createPasses } from './pass.ts'
import { explained, type RecordState } from './record.ts'
import type { Running } from './running.ts'

/** `last`: its conversation is taken up, or it is found running. `found`: only if it runs already. */
export type Conversation = 'last' | 'new' | 'found'

export interface StartingOptions extends SessionsOptions {
  readonly running: Map<string, Running>
  readonly ending: ReadonlyMap<string, Promise<unknown>>
  readonly leftovers: Leftovers
  readonly passes: ReturnType<typeof createPasses>
  readonly record: RecordState
  isPaused(agent: string): boolean
  /** How the service ends, once it does. */
  leaving(): false | 'leave' | 'end'
  address(): string | undefined
  /** To be started when the halt is over. */
  postpone(agent: string): void
}

const NONCE_BYTES = 9

/** Brings an agent up, whatever is left of it from before. Never rejects: what goes wrong is on record. */
export function createStarting(options: StartingOptions) {
  const { store, log, running, leftovers, record } = options
  /** Ended by themselves. Their last words may still be read, so that what they hold is let go at the next start only. */
  const ended = new Map<string, AgentDelivery>()

  async function start(config: AgentConfig, runtime: Runtime, conversation: Conversation) {
    const { name } = config
    const { promise, resolve } = Promise.withResolvers<Session | undefined>()
    const { promise: settled, resolve: settle } = Promise.withResolvers<void>()
    const gone = new AbortController()
    const entry: Running = { delivery: undefined, started: promise, settled, gone, isNew: false }
    // Before the first await, or two requests at once would start it twice.
    running.set(name, entry)
    let session: Session | undefined
    try {
      // Or what is about to end would be found running.
      await options.ending.get(name)
      await letGo(name)
      const wasInTurn = (await readAgent(store, name))?.in_turn === 1
      const row = await openSession(name, conversation)
      const delivery = attend(entry, config, runtime, row, wasInTurn)
      entry.delivery = delivery
      await options.permissions.begin(name)
      const how = row.kept === null ? 'a new conversation begins' : 'its session is taken up'
      await record(name, 'initializing', how)
      const kept = await leftovers.keptFor(runtime, row)
      gone.signal.throwIfAborted()
      const order = orderOf(entry, config, row, kept)
      session = await startOrFind(runtime, order, delivery.port, conversation === 'found')
      if (session === undefined) {
        if (running.get(name) === entry) running.delete(name)
        delivery.close()
        const why = options.isHalted() ? 'everything is stopped' : 'it is started when it is needed'
        await record(name, 'exited', `not started: ${why}`)
        return
      }
      resolve(session)
      if (running.get(name) === entry && !options.leaving()) await delivery.begin(session)
      else await endUnwanted(name, session, ended.get(name) === delivery)
      // It may have begun a turn while the halt came.
      if (options.isHalted()) void delivery.halt(ORCHESTRATOR)
    } catch (error) {
      if (running.get(name) === entry) running.delete(name)
      entry.delivery?.close()
      // Nobody attends it: where it can go on, the next start finds it.
      await session?.leave().catch(() => {})
      if (gone.signal.aborted) return await endHalfStarted(name)
      log.error({ agent: name, err: error }, 'the agent could not be started')
      await record(name, 'error', `could not be started: ${explained(error)}`)
      await options.watch.unreachable(name, `it could not be started: ${explained(error)}`)
    } finally {
      entry.gone = undefined
      resolve(undefined)
      settle()
    }
  }

  async function letGo(name: string) {
    const session = ended.get(name)?.session()
    ended.delete(name)
    await session?.leave().catch((error: unknown) => log.warn({ agent: name, err: error }, 'it ended badly'))
  }

  async function openSession(name: string, conversation: Conversation): Promise<SessionRow> {
    if (conversation === 'new') await options.meter.begin(name)
    return await store.write(async (tx) => {
      const row = await readSession(tx, name)
      if (row === undefined || conversation === 'new') {
        await beginSession(tx, name, randomBytes(NONCE_BYTES).toString('base64url'))
      } else await setWanted(tx, name, true)
      return (await readSession(tx, name))!
    })
  }

  function orderOf(entry: Running, config: AgentConfig, row: SessionRow, kept: unknown): AgentStart {
    const { name } = config
    const gone = entry.gone!.signal
    return {
      name,
      program: config.program,
      settings: config.with,
      prompt: options.prompt(name, row.nonce),
      cwd: config.folder,
      folder: join(options.team().config.stateFolder, 'agents', name),
      savedState: kept,
      nonce: row.nonce,
      signal: gone,
      async credentials(process) {
        gone.throwIfAborted()
        entry.isNew = true
        await store.write((tx) => setSession(tx, name, 'initializing', false))
        const url = options.address()
        if (url === undefined) throw new Error('agents are started before the service listens')
        // Before the process is there: should we be killed right after its start, the next service finds it running.
        if (process?.isResumed) await doubtUnanswered(store, options.mailboxes, name)
        return { url, token: await options.passes.issue(name) }
      },
      command: (said, key) => act(name, said, key),
    }
  }

  async function act(name: string, said: SaidCommand, key: string): Promise<CommandResult> {
    const receipt = await options.act(name, said, key).catch((error: unknown) => {
      log.error({ agent: name, err: error, command: said.type.slice(0, 100) }, 'a command failed')
      return errorReceipt(asAppError(error))
    })
    return { receipt, handedOut: handedOutBy(said.type, receipt) }
  }

  function attend(
    entry: Running,
    config: AgentConfig,
    runtime: Runtime,
    row: SessionRow,
    wasInTurn: boolean,
  ): AgentDelivery {
    const { name } = config
    // Not the row, which holds all that the session keeps.
    const { nonce } = row
    const { mailboxes, permissions, meter, clock, watch } = options
    const delivery = createAgentDelivery({
      ...{ name, store, mailboxes, permissions, clock, log },
      runtime: runtime.name,
      deliver: config.deliver,
      isPaused: () => options.isPaused(name),
      isHalted: options.isHalted,
      wasInTurn: () => wasInTurn && !entry.isNew,
      listen: (respond) => options.listen(name, nonce, respond),
      onUsage: (usage) => meter.used(name, usage),
      save: (value) =>
        store.write((tx) => keepInSession(tx, name, JSON.stringify({ runtime: runtime.name, value }))),
      async onChanged(state, evidence, isInTurn) {
        if (state === 'exited' && running.get(name) === entry) {
          running.delete(name)
          ended.set(name, delivery)
        }
        await record(name, state, evidence, isInTurn)
        if (state !== 'exited') return
        delivery.close()
        // With the service, all of them end; their tasks do not.
        if (!options.leaving()) await watch.exited(name, evidence)
      },
      onTurnBegan: () => void watch.turnBegan(name),
      onTurnEnded: (lastWords) => void watch.turnEnded(name, lastWords),
    })
    return delivery
  }

  /** In a halt nothing is started; what runs already is found again, so that it can be seen and stopped. */
  async function startOrFind(runtime: Runtime, agent: AgentStart, port: SessionPort, onlyIfFound: boolean) {
    if (!onlyIfFound && !options.isHalted()) return await runtime.start(agent, port)
    const found = agent.savedState === undefined ? undefined : await runtime.find?.(agent, port)
    if (found === undefined && options.isHalted() && !agent.signal?.aborted) options.postpone(agent.name)
    return found
  }

  /** It was stopped while it started, or the service ends; or it ended by itself, which is on record with the reason. */
  async function endUnwanted(name: string, session: Session, isEndOnRecord: boolean) {
    await (options.leaving() === 'leave' ? session.leave() : session.stop())
    if (!isEndOnRecord) await recordUnwanted(name)
  }

  /** What it kept before it started anything finds all that it has started. */
  async function endHalfStarted(name: string) {
    // The next start clears away what it finds, and what it keeps is its own.
    if (running.has(name)) return
    try {
      await leftovers.end(name)
      await recordUnwanted(name)
    } catch (error) {
      log.error({ agent: name, err: error }, 'a start that was called off did not end well')
    }
  }

  async function recordUnwanted(name: string) {
    if (running.has(name)) return
    const why = 'it was stopped while it started'
    await record(name, 'exited', why)
    if (!options.leaving()) await options.watch.exited(name, why)
  }

  return start
}
