import { agentCommands } from './agents/commands.ts'
import { renderPrompt } from './agents/prompt.ts'
import { createSessions } from './agents/session-lifecycle.ts'
import type { Sessions } from './agents/sessions.ts'
import {
  createScreens,
  createTerminalHolders,
  type Screens,
  type TerminalHolders,
} from './agents/terminals.ts'
import { createUsageTracker, type UsageTracker } from './agents/usage-and-limits.ts'
import type { Clock } from './base/clock.ts'
import type { Log } from './base/log.ts'
import type { CommandEntry, Handlers } from './commands/commands.ts'
import { createHaltState, type HaltState } from './commands/halt-state.ts'
import { createHandle, type Handle, type OnHandled } from './commands/handle.ts'
import { createRateLimits, type RateLimits } from './commands/rate-limits.ts'
import { createTeam, type Team } from './commands/team.ts'
import { openTokens, type Tokens } from './commands/tokens.ts'
import type { Config } from './config/config.ts'
import { createAnsweredCommands, createListener } from './delivery/listener.ts'
import { createGithubTeam, type GithubTeam } from './github/github.ts'
import type { GitHub } from './github/port.ts'
import { githubCommands } from './github/proposals.ts'
import { CONFIDENTIAL_PROMPT } from './github/team-settings.ts'
import { haltCommands } from './halt/commands.ts'
import { createHalt, type Halt } from './halt/halt.ts'
import type { Models } from './llm/llm.ts'
import { messageCommands } from './messages/commands.ts'
import { createConversations } from './messages/conversations.ts'
import { createMailboxes, type Mailboxes, post } from './messages/mailboxes.ts'
import { createAnswerCheck } from './people/answers.ts'
import { peopleCommands } from './people/commands.ts'
import { createHolding } from './people/hold-command.ts'
import { createPermissionDialogs, type PermissionDialogs } from './people/permission-dialogs.ts'
import { createVerdicts, type Verdicts } from './people/verdicts.ts'
import { createRegistry, isBuiltIn, type Registry } from './protocol/registry.ts'
import { createPlanner, type Planner } from './runs/plan/planner.ts'
import { runRequestOwner } from './runs/requests.ts'
import { createRuns, type Runs, runCommands } from './runs/runs.ts'
import { createTemporaryAgents } from './runs/workers/temporary-agents.ts'
import type { Runtime } from './runtimes/runtime.ts'
import type { Store } from './store/store.ts'
import { createTimers, type Timers } from './store/timers.ts'
import { taskCommands } from './tasks/commands.ts'
import { createTasks, heldInTasks, type Tasks, taskRequestOwner } from './tasks/tasks.ts'
import { createWebhooks, type Webhooks } from './webhooks/webhooks.ts'

interface EngineOptions {
  config: Config
  store: Store
  clock: Clock
  log: Log
  redact: (text: string) => string
  runtimes?: readonly Runtime[]
  /** For the judge of tasks and the choice of agents. */
  models?: Models
  /** Holds the secrets of webhooks. Default: the environment of the process. */
  env?: Readonly<Record<string, string | undefined>>
  /** How long a webhook's receiver may take. */
  webhookTimeoutMs?: number
  /** The environment of checks, without the service's own variables. Default: that of the process. */
  environment?: Readonly<NodeJS.ProcessEnv>
  /** Command types of the embedding application. */
  commands?: readonly CommandEntry[]
  /** False: start agents when they are needed instead of with the service. */
  autostart?: boolean
  /** Access to GitHub, if orc.yaml has a team for repositories. */
  github?: GitHub
}

/** The parts of a running service, which its transports share. */
export interface Engine {
  readonly store: Store
  readonly timers: Timers
  readonly clock: Clock
  readonly log: Log
  readonly permissions: PermissionDialogs
  readonly rateLimits: RateLimits
  readonly mailboxes: Mailboxes
  readonly sessions: Sessions
  readonly usageTracker: UsageTracker
  readonly tasks: Tasks
  readonly runs: Runs
  readonly haltState: HaltState
  readonly halt: Halt
  /** Removes secrets from a text. */
  redact(text: string): string
  /** The current team; a reload replaces it. */
  team(): Team
  readonly handle: Handle
  /** Calls back with every command and its receipt, for the metrics. */
  onHandled(observe: OnHandled): void
  readonly tokens: Tokens
  readonly verdicts: Verdicts
  readonly webhooks: Webhooks
  /** Undefined unless orc.yaml says `github`. */
  readonly github: GithubTeam | undefined
  readonly terminals: TerminalHolders
  readonly screens: Screens
  readonly planner: Planner
  readonly registry: Registry
  /** Whether a command of this type changes nothing. */
  looksOnly(type: string): boolean
  /** Text of an agent's prompt, or undefined for an unknown agent. */
  prompt(agent: string): string | undefined
  /** Starts the agents, once the service can be reached at that address. */
  begin(url: string): Promise<void>
  /** Applies another configuration: rules, permissions, limits, agents. */
  reload(config: Config): Promise<void>
  /** `leave`: agents that can outlive the service keep running; otherwise they end with it. */
  close(how?: 'leave' | 'end'): Promise<void>
}

export async function openEngine(options: EngineOptions): Promise<Engine> {
  const { store, clock, log } = options
  let configured = options.config
  const temporaryAgents = createTemporaryAgents({
    async changed() {
      team = createTeam(temporaryAgents.addTo(configured))
      await sessions.follow()
    },
    stop: (agent) => sessions.stop(agent),
  })
  let team: Team = createTeam(configured)
  const closing = new AbortController()
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
  const usageTracker = createUsageTracker({
    store,
    mailboxes,
    log,
    team: () => team,
    taskOf: (agent) => tasks.spendsOn(agent),
    isPaused: (agent) => sessions.isPaused(agent),
    pause: (agent) => sessions.setPaused(agent, true),
  })
  const tasks: Tasks = createTasks({
    haltState,
    haltAffects: (agent) => halt.affected(agent),
    store,
    mailboxes,
    timers,
    clock,
    log,
    redact: options.redact,
    models: options.models,
    usageTracker,
    environment: options.environment ?? process.env,
    team: () => team,
    sessions: () => sessions,
  })
  const held = heldInTasks(tasks)
  const holding = createHolding({ timers, tasks: held, redact: options.redact })
  const permissions = createPermissionDialogs({
    ...{ store, timers, redact: options.redact, after: clock.after },
    about: held.about,
  })
  const sessions: Sessions = createSessions({
    watch: tasks.watch,
    isHalted,
    autostart: options.autostart ?? true,
    store,
    mailboxes,
    permissions,
    usageTracker,
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
    ...{ store, timers, clock, log, haltState, tasks, usageTracker, temporaryAgents, mailboxes },
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
  const rateLimits = createRateLimits()
  const checkAnswer = createAnswerCheck({
    ...{ store, clock, models: options.models, ownCall: usageTracker.ownCall },
    team: () => team,
  })
  const terminals = createTerminalHolders({ sessions, store, clock, log })
  const commands = [
    ...messageCommands({ mailboxes, haltState, conversations, rateLimits, holding, redact: options.redact }),
    ...agentCommands({ store, sessions, usageTracker, log, terminals, tokens }),
    ...taskCommands({
      ...{ tasks, sessions, conversations, holding, store, timers, usageTracker },
      models: options.models,
      redact: options.redact,
      decide: (...verdict) => verdicts.decide(...verdict),
      checkAnswer: (...answer) => verdicts.checkAnswer(...answer),
      closing: closing.signal,
    }),
    ...peopleCommands(() => verdicts),
    ...runCommands(runs),
    ...haltCommands(halt),
    ...(options.github === undefined ? [] : githubCommands(options.redact)),
    ...(options.commands ?? []),
  ]
  const added = commands.map(({ definition }) => definition).filter((one) => !isBuiltIn(one))
  const registry = createRegistry(added)
  const handlers = handlersByType(registry, commands)
  const verdicts: Verdicts = createVerdicts({
    ...{ store, timers, clock, registry, handlers, haltState, permissions, checkAnswer },
    tasks: held,
    owners: { task: taskRequestOwner(tasks.tell), run: runRequestOwner(() => runs) },
    async post(tx, message) {
      await post(tx, mailboxes, message)
      tx.afterCommit(() => {
        sessions
          .wake(message.to)
          .catch((error: unknown) =>
            log.error({ agent: message.to, err: error }, 'an agent could not be woken'),
          )
      })
    },
    onContinued: (pair) => conversations.forget(pair),
    redact: options.redact,
    team: () => team,
  })
  const { handle, onHandled } = createHandle({
    ...{ store, registry, handlers, rateLimits, haltState, clock, log },
    team: () => team,
    hold: holding.hold,
    turnBegan: (agent) => sessions.turnBegan(agent),
    onHalted: (agent) => halt.affected(agent),
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
          ...{ store, timers, clock, log, handle, mailboxes, isHalted },
          github: options.github,
          redact: options.redact,
          team: () => team,
          env: options.env ?? process.env,
          ...{ tasks, sessions, verdicts },
        })

  await halt.open()
  await runs.open()
  team = createTeam(temporaryAgents.addTo(configured))
  await sessions.open()
  await usageTracker.open()
  await timers.start()

  return {
    ...{
      store,
      timers,
      clock,
      log,
      permissions,
      rateLimits,
      mailboxes,
      sessions,
      usageTracker,
      tasks,
      runs,
      haltState,
      halt,
      registry,
    },
    redact: options.redact,
    team: () => team,
    handle,
    onHandled,
    tokens,
    verdicts,
    webhooks,
    github,
    terminals,
    screens: createScreens((agent) => sessions.session(agent)),
    planner: createPlanner({ models: options.models, usageTracker, team: () => team }),
    looksOnly: (type) => handlers[type]?.looksOnly === true,
    prompt(agent) {
      const name = team.resolve(agent)
      return name === undefined ? undefined : promptOf(name)
    },
    async begin(url) {
      await webhooks.begin()
      await sessions.begin(url)
      if (!closing.signal.aborted) await tasks.begin()
      if (!closing.signal.aborted) await runs.begin()
      if (!closing.signal.aborted) await github?.begin()
    },
    async reload(config) {
      configured = config
      team = createTeam(temporaryAgents.addTo(config))
      await sessions.follow()
      await webhooks.follow()
      await github?.follow()
    },
    async close(how = 'end') {
      closing.abort()
      timers.stop()
      terminals.close()
      await github?.close()
      await runs.close(how)
      await tasks.close()
      await sessions.close(how)
      await webhooks.close()
      await store.close()
    },
  }
}

/** A built-in command without a handler is found when the service starts, not when somebody sends it. */
function handlersByType(registry: Registry, commands: readonly CommandEntry[]): Handlers {
  const handlers = Object.fromEntries(commands.map(({ definition, handler }) => [definition.type, handler]))
  const missing = registry.everyone().find(({ type }) => handlers[type] === undefined)
  if (missing !== undefined) throw new Error(`the command ${missing.type} has no handler`)
  return handlers
}
