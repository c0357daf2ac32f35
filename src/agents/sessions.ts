import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Team } from '../commands/team.ts'
import type { Tokens } from '../commands/tokens.ts'
import type { AgentDelivery } from '../delivery/agent-delivery.ts'
import type { CommandResponse, Listener } from '../delivery/listener.ts'
import type { Mailboxes } from '../messages/mailboxes.ts'
import type { PermissionDialogs } from '../people/permission-dialogs.ts'
import type { AgentAction, RawCommand } from '../protocol/command.ts'
import type { Receipt } from '../protocol/receipt.ts'
import type { Runtime, Session } from '../runtimes/runtime.ts'
import type { Store } from '../store/store.ts'
import type { UsageTracker } from './usage-and-limits.ts'

/** The agents that Orchub runs: starts, reattaches to and ends their sessions. */
export interface Sessions {
  /** Why an action is impossible right now; undefined if it is possible. */
  impossible(agent: string, action: AgentAction): { reason: string; hint: string } | undefined
  /** Resumes the agent's last conversation, or reattaches if it still runs. */
  start(agent: string): Promise<void>
  /** Starts the agent for a message or task, unless it runs already or a person stopped it. */
  wake(agent: string): Promise<void>
  /** Stops the agent until a person or a task starts it again. */
  stop(agent: string): Promise<void>
  /** Starts a new conversation with the agent's role. */
  reset(agent: string): Promise<void>
  /** Interrupts the agents at work and starts no others until `endHalt`. Returns those agents at once. */
  halt(by: string): readonly Halting[]
  /** Ends the halt: starts the agents it postponed, and lets deliveries continue. */
  endHalt(): void
  /** A person interrupts an agent's turn. Undefined: it had none. */
  interrupt(agent: string, by: string): Promise<{ stopped: boolean; evidence: string } | undefined>
  /** Recent output of the agent since the service started it or reattached, oldest first. */
  recentOutput(agent: string): ReturnType<AgentDelivery['recentOutput']>
  setPaused(agent: string, paused: boolean): void
  /** Calls the listener whenever a paused agent is resumed. */
  onResumed(listener: (agent: string) => void): void
  isPaused(agent: string): boolean
  /** Handles a hook call of the agent's program. */
  hook(agent: string, event: unknown, signal: AbortSignal): Promise<unknown>
  /** The agent's program has listed our tools over MCP. */
  toolsGiven(agent: string): void
  session(agent: string): Session | undefined
  /** True for an agent with a runtime that is starting, or whose service has not begun yet. */
  isComingUp(agent: string): boolean
  /** True while there is a turn to interrupt: the agent works, or waits at a dialog in the middle of its work. */
  isInTurn(agent: string): boolean
  /** Start of its current turn, or of its last one. */
  turnBegan(agent: string): number | undefined
  /** Why a queued message is not delivered yet. Undefined for an agent that fetches its messages itself. */
  waitsFor(agent: string): string | undefined
  /** Registers the team's agents, and reads which ones are paused. */
  open(): Promise<void>
  /** Starts autostart agents, and those that ran when the service ended. `url` is the service's address for agents. */
  begin(url: string): Promise<void>
  /** After a reload: registers and starts new agents, stops those no longer in the team. */
  follow(): Promise<void>
  /** `leave`: agents that can outlive the service keep running. `end`: all are stopped. */
  close(how: 'leave' | 'end'): Promise<void>
}

/** Whether an agent's turn ended, with the evidence. */
export interface Interrupted {
  agent: string
  stopped: boolean
  evidence: string
}

export interface Halting {
  agent: string
  /** False if a delivery is in progress instead. */
  isInTurn: boolean
  /** Undefined if there was no turn to end. */
  done: Promise<Interrupted | undefined>
}

export interface SessionsOptions {
  store: Store
  mailboxes: Mailboxes
  permissions: PermissionDialogs
  usageTracker: UsageTracker
  tokens: Tokens
  clock: Clock
  log: Log
  runtimes: readonly Runtime[]
  team: () => Team
  prompt: (agent: string, nonce: string) => string
  /** Opens the listener that executes the commands in an agent's text and returns the responses. */
  listen: (agent: string, nonce: string, respond: (response: CommandResponse) => Promise<void>) => Listener
  watch: SessionWatch
  isHalted(): boolean
  /** False: agents start only when something is sent to them, not with the service. */
  autostart: boolean
  /** Executes a command that an agent sends by a tool call. */
  act: (agent: string, said: RawCommand, key: string) => Promise<Receipt>
}

/** Observes the agents' turns. No method may reject. */
export interface SessionWatch {
  turnBegan(agent: string): Promise<void>
  turnEnded(agent: string, lastWords: string): Promise<void>
  exited(agent: string, why: string): Promise<void>
  /** The agent could not be started. */
  unreachable(agent: string, why: string): Promise<void>
}
