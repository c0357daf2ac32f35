import type { SessionState } from '../base/agent.ts'
import { reasonOf } from '../base/errors.ts'
import type { SettingsProblem } from '../base/settings-problem.ts'
import type { DeliveryState } from '../messages/message.ts'
import type { RawCommand } from '../protocol/command.ts'
import type { Receipt } from '../protocol/receipt.ts'

/**
 * Runs agents and delivers text to them: in process, in a tmux pane, or as a process that speaks ACP.
 */
export interface Runtime {
  readonly name: string
  /** Validates an agent's settings when orc.yaml is read; each problem names the path inside them. */
  check(agent: AgentSettings): SettingsProblem[]
  /** Starts the agent, or reattaches if its saved state shows that it still runs. */
  start(agent: AgentStart, port: SessionPort): Promise<Session>
  /** Only reattaches: returns undefined, and starts nothing, if the agent does not run. */
  find?(agent: AgentStart, port: SessionPort): Promise<Session | undefined>
  /**
   * Ends processes that an earlier session left running, identified by its saved state. Called when the agent was
   * removed or its runtime changed.
   */
  discard?(savedState: unknown): Promise<void>
  /** Releases the runtime's own resources. Agents that can outlive the service keep running. */
  close?(): Promise<void>
}

/** How orc.yaml says an agent is run. */
export interface AgentSettings {
  /** The agent program, for runtimes that run one. */
  readonly program: string | undefined
  /** The value of `with:`, defined by the runtime or the program. */
  readonly settings: unknown
}

export interface AgentStart extends AgentSettings {
  readonly name: string
  /** Describes the protocol, the agent's role and its permissions. */
  readonly prompt: string
  /** Working directory. */
  readonly cwd: string
  /** Private folder of this agent, created on first use; its content survives restarts. */
  readonly folder: string
  /**
   * State saved by an earlier session of this agent (`SessionPort.saveState`); undefined for a new conversation.
   */
  readonly savedState: unknown
  /** Marks the agent's commands wherever other text on the screen could be mistaken for them. */
  readonly nonce: string
  /**
   * Issues credentials for the service in the agent's name. This revokes the previous token, so call it right
   * before starting a process. `isResumed`: the process resumes an earlier conversation; messages that
   * conversation received but had not stored are looked up.
   */
  credentials(process?: { isResumed: boolean }): Promise<AgentCredentials>
  /**
   * Aborts if the agent is no longer wanted while it starts: `start` then ends what it has started, and
   * rejects.
   */
  readonly signal?: AbortSignal
  /**
   * Executes a command in the agent's name, for agents that have no process to call the service from. The
   * same key acts once (C25). Never rejects: failures are in the receipt.
   */
  command?(said: RawCommand, key: string): Promise<CommandResult>
}

export interface CommandResult {
  readonly receipt: Receipt
  /** Messages delivered by the receipt; report them with `onEvidence` once the agent has them. */
  readonly handedOut: readonly string[]
}

export interface AgentCredentials {
  /** For example `http://127.0.0.1:7420`; MCP is at `/mcp`, hooks at `/hooks`. */
  readonly url: string
  readonly token: string
}

/** A session reports to the engine through this port. */
export interface SessionPort {
  /**
   * The agent's own text, and nothing else (C4). Resolves when every command in it was executed and answered,
   * so that its transcript offset may be saved; the same key acts once (C25).
   */
  onText(agentText: AgentText): Promise<void>
  /** A state change, with its evidence. */
  onStateChange(state: SessionState, evidence: string): void
  /**
   * Why an idle agent cannot receive text, such as a person's draft. Called on every change, also after the
   * delivery that was blocked has given up, until `undefined` means that nothing blocks. The engine delivers
   * nothing before that.
   */
  onObstacle(reason: string | undefined): void
  /**
   * True while nothing may be delivered (agent paused, or everything halted). For sessions that retry a
   * delivery by themselves.
   */
  isPaused(): boolean
  /**
   * Evidence, at any time, that messages got further. `queued`: an interrupt removed them from the
   * conversation before they were answered, so they must be delivered again.
   */
  onEvidence(ids: readonly string[], state: 'submitted' | 'read' | 'queued', evidence: string): void
  /**
   * The program asks a person for permission. Resolves with the verdict, or with undefined when `signal`
   * aborts.
   */
  askPermission(question: PermissionQuestion, signal: AbortSignal): Promise<PermissionVerdict | undefined>
  /** Context size and tokens spent. */
  onUsage(usage: Usage): void
  /**
   * Saves what is needed to reattach or to resume the conversation after a restart. JSON; the last value
   * wins.
   */
  saveState(value: unknown): Promise<void>
}

export interface AgentText {
  readonly text: string
  /** `pane`: read off a terminal, where anyone's text may appear, so commands must carry the nonce. */
  readonly channel: 'transcript' | 'api' | 'pane'
  /**
   * With a key, the text is complete; without one it is the next piece of a stream that ends with the turn.
   */
  readonly key?: string
}

export interface PermissionQuestion {
  /** Identical for every attempt to ask about the same dialog. */
  readonly key: string
  /** The tool, such as `Bash`. */
  readonly tool: string
  /** The exact command, file or change, as shown to the person. */
  readonly input: Readonly<Record<string, unknown>>
  /** The program's stated reason. */
  readonly reason?: string
}

export interface PermissionVerdict {
  readonly allow: boolean
  /** The person's remark; the agent sees it when denied. */
  readonly comment?: string
}

/** C26: context of the last response relative to the model's window, and tokens spent, for the cost. */
export interface Usage {
  readonly model?: string
  readonly contextTokens?: number
  readonly contextWindow?: number
  readonly lines?: number
  readonly bytes?: number
  /** Tokens of one response, to be summed up. The same `key` counts once. */
  readonly spent?: { key: string; input: number; output: number; cacheRead: number; cacheWrite: number }
}

/**
 * How far a text got, and the evidence (C27). `queued`: it certainly did not arrive and may be sent again.
 * `uncertain`: unknown, so it must be located before it is sent again.
 */
export interface DeliveryResult {
  readonly state: Extract<DeliveryState, 'queued' | 'submitted' | 'read' | 'uncertain'>
  readonly evidence: string
  /** Set if only the first messages of the turn fitted; the others certainly did not arrive. */
  readonly ids?: readonly string[]
}

/** For a delivery cancelled before anything was written. */
export function cancelledResult({ reason }: AbortSignal): DeliveryResult {
  return { state: 'queued', evidence: `no longer wanted: ${reasonOf(reason)}` }
}

/** Why nothing is delivered to an agent in each state. */
export const NOT_IDLE_REASON: Record<Exclude<SessionState, 'idle'>, string> = {
  initializing: 'it is still starting',
  busy: 'it is busy',
  waiting_input: 'it is waiting for a person',
  paused: 'it is paused',
  error: 'it has an error',
  exited: 'it has exited',
  unknown: 'its state is unknown',
}

/** Input of a turn: responses to its commands, then messages in their envelopes. */
export interface Turn {
  readonly text: string
  /** Ids of the messages in it; empty if it holds only responses. */
  readonly ids: readonly string[]
}

/** Location of a message of an earlier attempt. `absent`: the agent certainly never received it. */
export interface MessageLocation {
  readonly at: 'submitted' | 'absent' | 'unknown'
  readonly evidence: string
}

/** A running agent. */
export interface Session {
  readonly state: SessionState
  /** Output is read from a file and may therefore appear shortly after its turn ended. */
  readonly hasDelayedOutput?: boolean
  /**
   * Submits text as the agent's next turn. Called only while it is idle, one at a time. If `signal` aborts
   * before anything was written, the result is `queued`; a write in progress is finished.
   */
  deliver(turn: Turn, signal?: AbortSignal): Promise<DeliveryResult>
  /**
   * Locates messages of earlier attempts, in order, with one lookup for all, to decide whether they may be
   * sent again (C25). Submits our own pending input.
   */
  locate(ids: readonly string[]): Promise<readonly MessageLocation[]>
  /**
   * An earlier service left our text unsubmitted. It may hold no message, so `locate` alone would not find
   * it.
   */
  hasPendingInput?(): boolean
  /** Shows the agent a notice, even while it is busy, without ending its turn (C2). */
  notice(text: string): Promise<void>
  /** Ends the current turn for something urgent (C2). `stopped` requires evidence. */
  interrupt(): Promise<{ stopped: boolean; evidence: string }>
  /** Handles a hook call of the program. The result goes back to the program as JSON. */
  hook?(event: unknown, signal: AbortSignal): Promise<unknown>
  /** The program has listed our MCP tools: its model can call them from now on. */
  onToolsListed?(): void
  /** Sets the label that people see at the agent's terminal. */
  setLabel?(label: string): void
  /** Command line with which a person can watch it in a terminal. */
  readonly viewCommand?: readonly string[]
  /** The last lines of its output, as plain text. */
  screen?(lines: number): Promise<string>
  /** Current content of its terminal, if it has one. */
  snapshot?(): Promise<TerminalSnapshot>
  /** Lets a person type into its terminal; deliveries wait until the keyboard is released. */
  takeOver?(by: string): TerminalKeyboard
  /** Ends it without leaving a process or a pane. */
  stop(): Promise<void>
  /** The service ends; the agent keeps running if it can, and is found again by its saved state. */
  leave(): Promise<void>
}

/** A terminal's content at one moment: coloured rows, each readable on its own. */
export interface TerminalSnapshot {
  readonly columns: number
  /** Top to bottom. SGR sequences and text only; nothing that moves the cursor. */
  readonly rows: readonly string[]
  /** Undefined while hidden. */
  readonly cursor: { readonly x: number; readonly y: number } | undefined
}

/** Lets a person type into a terminal. */
export interface TerminalKeyboard {
  /** Key bytes as a terminal sends them. */
  type(keys: string): Promise<void>
  /** Pastes the text as one piece; it cannot contain key presses. */
  paste(text: string): Promise<void>
  /** Lets deliveries continue. */
  release(): void
}
