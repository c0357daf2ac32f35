import type { Config } from '../config.ts'
import { asAppError } from '../model/errors.ts'
import { errorReceipt, type Receipt } from '../model/receipt.ts'
import { createRegistry, type Registry } from '../model/registry.ts'
import type { Models } from '../models/model.ts'
import type { Runtime } from '../runtimes/runtime.ts'
import type { Store } from '../store/store.ts'
import { createAdmission } from './admission.ts'
import type { Switch } from './context.ts'
import { createConversations } from './conversations.ts'
import { createHandle, type Handle } from './handle.ts'
import type { AddedCommand } from './handler.ts'
import { handlerTable } from './handlers/table.ts'
import { createListener } from './listener.ts'
import { createMailroom } from './mailroom.ts'
import { createMeter } from './meter.ts'
import { createPermissionDesk } from './permissions.ts'
import { renderPrompt } from './prompt.ts'
import { createSessions, type Sessions } from './sessions.ts'
import type { Clock, Log } from './surroundings.ts'
import { createTasks, type Tasks } from './tasks.ts'
import { createTeam, type Team } from './team.ts'
import { createTimers } from './timers.ts'
import { openTokens, type Tokens } from './tokens.ts'
import { createVerdicts, type Verdicts } from './verdicts.ts'

export interface SwitchboardOptions {
  config: Config
  store: Store
  clock: Clock
  log: Log
  redact: (text: string) => string
  runtimes?: readonly Runtime[]
  /** For the judge of tasks. */
  models?: Models
  /** Command types of the embedding application. */
  commands?: readonly AddedCommand[]
}

/** The whole core: one door, and what stands around it. */
export interface Switchboard extends Switch {
  readonly handle: Handle
  /** Sees every command with what became of it, wherever it was said: for the metrics. */
  onHandled(observe: OnHandled): void
  readonly tokens: Tokens
  readonly verdicts: Verdicts
  readonly registry: Registry
  /** Whether a command of this type changes nothing. */
  looksOnly(type: string): boolean
  /** Text of an agent's prompt, or undefined for an unknown agent. */
  prompt(agent: string): string | undefined
  /** Starts the agents, once the service can be reached at that address. */
  begin(url: string): Promise<void>
  /** Puts another configuration in force: rules, permissions, limits, agents. */
  reload(config: Config): Promise<void>
  /** `leave`: agents that can outlive the service go on. Otherwise they end with it. */
  close(how?: 'leave' | 'end'): Promise<void>
}

export type OnHandled = (type: string, receipt: Receipt, milliseconds: number) => void

export async function openSwitchboard(options: SwitchboardOptions): Promise<Switchboard> {
  const { store, clock, log } = options
  const added = options.commands ?? []
  const registry = createRegistry(added.map((one) => one.definition))
  const handlers = handlerTable(added)
  let team: Team = createTeam(options.config)

  const conversations = createConversations()
  const timers = createTimers(store, clock, log)
  const mailroom = createMailroom(store, timers, conversations, clock)
  const tokens = await openTokens(store)
  const permissions = createPermissionDesk({ store, timers, redact: options.redact, after: clock.after })
  const meter = createMeter({
    store,
    mailroom,
    team: () => team,
    isHeld: (agent) => sessions.isPaused(agent),
    hold: (agent) => sessions.setPaused(agent, true),
  })
  const tasks: Tasks = createTasks({
    store,
    mailroom,
    timers,
    clock,
    log,
    redact: options.redact,
    models: options.models,
    team: () => team,
    sessions: () => sessions,
  })
  const sessions: Sessions = createSessions({
    watch: tasks.watch,
    store,
    mailroom,
    permissions,
    meter,
    tokens,
    clock,
    log,
    runtimes: options.runtimes ?? [],
    team: () => team,
    prompt: (agent, nonce) => renderPrompt(agent, team, registry, nonce),
    listen: (agent, nonce, answer) =>
      createListener({
        registry,
        nonce,
        answer,
        handle: (said, circumstances) => handle({ kind: 'agent', agent }, said, circumstances),
        unmarked: (type) => log.debug({ agent, command: type }, 'a command on the screen has no nonce'),
      }),
    act: (agent, said, idempotencyKey) =>
      handle({ kind: 'agent', agent }, said, { channel: 'mcp', idempotencyKey }),
  })
  const parts: Switch = {
    store,
    registry,
    admission: createAdmission(),
    conversations,
    mailroom,
    timers,
    sessions,
    tasks,
    decide: async (tx, id, verdict) =>
      (await verdicts.whyNot(tx, id, verdict)) ?? (await verdicts.decideIn(tx, id, verdict)),
    permissions,
    meter,
    clock,
    log,
    redact: options.redact,
    team: () => team,
  }
  const door = createHandle(parts, handlers)
  const observers: OnHandled[] = []
  const handle: Handle = async (principal, said, circumstances) => {
    const startedAt = performance.now()
    try {
      const receipt = await door(principal, said, circumstances)
      for (const observe of observers) observe(said.type, receipt, performance.now() - startedAt)
      return receipt
    } catch (error) {
      const receipt = errorReceipt(asAppError(error))
      for (const observe of observers) observe(said.type, receipt, performance.now() - startedAt)
      throw error
    }
  }
  const verdicts: Verdicts = createVerdicts(parts, handlers)

  await sessions.open()
  await meter.open()
  await timers.start()

  return {
    ...parts,
    handle,
    onHandled: (observe) => void observers.push(observe),
    tokens,
    verdicts,
    looksOnly: (type) => handlers[type]?.looksOnly === true,
    prompt(agent) {
      const name = team.resolve(agent)
      return name === undefined ? undefined : renderPrompt(name, team, registry)
    },
    async begin(url) {
      await sessions.begin(url)
      await tasks.begin()
    },
    async reload(config) {
      team = createTeam(config)
      await sessions.follow()
    },
    async close(how = 'end') {
      timers.stop()
      tasks.close()
      await sessions.close(how)
      await store.close()
    },
  }
}
