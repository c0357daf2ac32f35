import { createMeter } from './agents/meter.ts'
import { renderPrompt } from './agents/prompt.ts'
import { createSessions, type Sessions } from './agents/sessions.ts'
import { openTokens, type Tokens } from './agents/tokens.ts'
import type { Clock } from './base/clock.ts'
import { asAppError } from './base/errors.ts'
import type { Log } from './base/log.ts'
import type { EngineParts } from './commands/context.ts'
import { createHaltState } from './commands/halt-state.ts'
import { createHandle, type Handle } from './commands/handle.ts'
import type { AddedCommand } from './commands/handler.ts'
import { createRateLimits } from './commands/rate-limits.ts'
import { createTeam, type Team } from './commands/team.ts'
import type { Config } from './config/config.ts'
import { createAnsweredCommands, createListener } from './delivery/listener.ts'
import { handlerTable } from './engine-handlers.ts'
import { createGithubTeam, type GithubTeam } from './github/github.ts'
import type { GitHub } from './github/port.ts'
import { githubAction } from './github/team/command.ts'
import { CONFIDENTIAL_PROMPT } from './github/terms.ts'
import { createHalt } from './halt/halt.ts'
import type { Models } from './llm/llm.ts'
import { createConversations } from './messages/conversations.ts'
import { createMailboxes } from './messages/mailboxes.ts'
import { createAnswerCheck } from './people/answers.ts'
import { createPermissionDialogs } from './people/permission-dialogs.ts'
import { createVerdicts, type Verdicts } from './people/verdicts.ts'
import { errorReceipt, type Receipt } from './protocol/receipt.ts'
import { createRegistry, type Registry } from './protocol/registry.ts'
import { createPlanner, type Planner } from './runs/plan/planner.ts'
import { createRuns, type Runs } from './runs/runs.ts'
import { createGuests } from './runs/workers/guests.ts'
import type { Runtime } from './runtimes/runtime.ts'
import type { Store } from './store/store.ts'
import { createTimers } from './store/timers.ts'
import { type Asks, createAsks } from './tasks/asks.ts'
import { createTasks, type Tasks } from './tasks/tasks.ts'
import { createWebhooks, type Webhooks } from './webhooks/webhooks.ts'

export interface EngineOptions {
  config: Config
  store: Store
  clock: Clock
  log: Log
  redact: (text: string) => string
  runtimes?: readonly Runtime[]
  /** For the judge of tasks and the choice of agents. */
  models?: Models
  /** Where the secrets of webhooks are; the environment of the process unless said. */
  env?: Readonly<Record<string, string | undefined>>
  /** How long a webhook's receiver may take. */
  webhookTimeoutMs?: number
  /** What checks find around them, but for what is the service's own. Default: what the service was started with. */
  environment?: Readonly<NodeJS.ProcessEnv>
  /** Command types of the embedding application. */
  commands?: readonly AddedCommand[]
  /** Agents are started with the service (unless they say otherwise); false: when they are needed. */
  autostart?: boolean
  /** What the team for repositories acts through, where orc.yaml has one. */
  github?: GitHub
}

/** The whole core: one door, and what stands around it. */
export interface Engine extends EngineParts {
  readonly handle: Handle
  /** Sees every command with what became of it, wherever it was said: for the metrics. */
  onHandled(observe: OnHandled): void
  readonly tokens: Tokens
  readonly verdicts: Verdicts
  readonly webhooks: Webhooks
  /** Where orc.yaml says `github`. */
  readonly github: GithubTeam | undefined
  readonly asks: Asks
  readonly planner: Planner
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

export async function openEngine(options: EngineOptions): Promise<Engine> {
  const { store, clock, log } = options
  const added = [...(options.commands ?? []), ...(options.github === undefined ? [] : [githubAction])]
  const registry = createRegistry(added.map((one) => one.definition))
  const handlers = handlerTable(added)
  let configured = options.config
  const guests = createGuests({
    async changed() {
      team = createTeam(guests.among(configured))
      await sessions.follow()
    },
    stop: (agent) => sessions.stop(agent),
  })
  let team: Team = createTeam(configured)
  let closed = false
  const promptOf = (agent: string, nonce?: string) =>
    renderPrompt(agent, team, registry, {
      nonce,
      notes: team.isConfidential(agent) ? CONFIDENTIAL_PROMPT : [],
    })

  const conversations = createConversations()
  const haltState = createHaltState()
  const isHalted = () => haltState.halted() !== undefined
  const timers = createTimers(store, clock, log, isHalted)
  const mailboxes = createMailboxes(store, timers, conversations, clock, isHalted)
  const tokens = await openTokens(store, clock.now)
  const permissions = createPermissionDialogs({ store, timers, redact: options.redact, after: clock.after })
  const meter = createMeter({
    store,
    mailboxes,
    log,
    team: () => team,
    taskOf: (agent) => tasks.spendsOn(agent),
    isHeld: (agent) => sessions.isPaused(agent),
    hold: (agent) => sessions.setPaused(agent, true),
  })
  const tasks: Tasks = createTasks({
    haltState,
    disturbed: (agent) => halt.disturbed(agent),
    store,
    mailboxes,
    timers,
    clock,
    log,
    redact: options.redact,
    models: options.models,
    meter,
    environment: options.environment ?? process.env,
    team: () => team,
    sessions: () => sessions,
  })
  const sessions: Sessions = createSessions({
    watch: tasks.watch,
    isHalted,
    autostart: options.autostart ?? true,
    store,
    mailboxes,
    permissions,
    meter,
    tokens,
    clock,
    log,
    runtimes: options.runtimes ?? [],
    team: () => team,
    prompt: promptOf,
    listen: (agent, nonce, respond) =>
      createListener({
        ...{ registry, nonce, respond },
        answered: createAnsweredCommands(store, agent, log),
        onUnmarked: (type) => log.debug({ agent, command: type }, 'a command on the screen has no nonce'),
        handle: (said, origin) => handle({ kind: 'agent', agent }, said, origin),
      }),
    act: (agent, said, idempotencyKey) =>
      handle({ kind: 'agent', agent }, said, { channel: 'mcp', idempotencyKey }),
  })
  const runs: Runs = createRuns({
    ...{ store, timers, clock, log, haltState, tasks, meter, guests, mailboxes },
    runtimes: options.runtimes ?? [],
    redact: options.redact,
    models: options.models,
    environment: options.environment ?? process.env,
    team: () => team,
    sessions: () => sessions,
  })
  const halt = createHalt({
    ...{ store, clock, log, haltState, timers, mailboxes, sessions, tasks, runs },
    team: () => team,
  })
  const parts: EngineParts = {
    haltState,
    halt,
    store,
    registry,
    rateLimits: createRateLimits(),
    conversations,
    mailboxes,
    timers,
    sessions,
    tasks,
    runs,
    decide: async (tx, person, id, verdict) =>
      (await verdicts.whyNot(tx, person, id, verdict)) ?? (await verdicts.decideIn(tx, person, id, verdict)),
    whyNoAnswer: (person, id, verdict) => verdicts.whyNoAnswer(person, id, verdict),
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
  const checkAnswer = createAnswerCheck({ store, clock, meter, models: options.models, team: () => team })
  const verdicts: Verdicts = createVerdicts(parts, handlers, checkAnswer)
  const asks = createAsks({
    ...{ store, tasks, meter, models: options.models, redact: options.redact },
    team: () => team,
  })

  const webhooks = createWebhooks({
    ...{ store, clock, log, redact: options.redact },
    team: () => team,
    ...(options.env === undefined ? {} : { env: options.env }),
    ...(options.webhookTimeoutMs === undefined ? {} : { timeoutMs: options.webhookTimeoutMs }),
  })

  const github =
    options.github === undefined
      ? undefined
      : createGithubTeam({
          ...{ parts, verdicts, handle, github: options.github },
          env: options.env ?? process.env,
        })

  await halt.open()
  await runs.open()
  team = createTeam(guests.among(configured))
  await sessions.open()
  await meter.open()
  await timers.start()

  return {
    ...parts,
    handle,
    onHandled: (observe) => void observers.push(observe),
    tokens,
    verdicts,
    webhooks,
    github,
    asks,
    planner: createPlanner({ models: options.models, meter, team: () => team }),
    looksOnly: (type) => handlers[type]?.looksOnly === true,
    prompt(agent) {
      const name = team.resolve(agent)
      return name === undefined ? undefined : promptOf(name)
    },
    async begin(url) {
      await webhooks.begin()
      await sessions.begin(url)
      if (!closed) await tasks.begin()
      if (!closed) await runs.begin()
      if (!closed) await github?.begin()
    },
    async reload(config) {
      configured = config
      team = createTeam(guests.among(config))
      await sessions.follow()
      await webhooks.follow()
      await github?.follow()
    },
    async close(how = 'end') {
      closed = true
      timers.stop()
      asks.close()
      await github?.close()
      await runs.close(how)
      await tasks.close()
      await sessions.close(how)
      await webhooks.close()
      await store.close()
    },
  }
}
