import type { SessionState } from '../model/agent.ts'
import type { SaidCommand } from '../model/command.ts'
import type { DeliveryState } from '../model/message.ts'
import type { Receipt } from '../model/receipt.ts'
import type { SettingsProblem } from '../model/settings.ts'
import type { Keyboard, Picture } from './picture.ts'

/** Where an agent runs and how text reaches it: in process, in a tmux pane, as a process that speaks ACP. */
export interface Runtime {
  readonly name: string
  /** Checks an agent's settings when orc.yaml is read; each problem names the path inside them. */
  check(agent: AgentSettings): SettingsProblem[]
  /** Starts the agent, or finds it again when `kept` says that it is still running. */
  start(agent: AgentStart, port: SessionPort): Promise<Session>
  /** The same, but only finds it: gives nothing, and starts nothing, unless it is still running. */
  find?(agent: AgentStart, port: SessionPort): Promise<Session | undefined>
  /** Ends what an earlier session left running, known by what it kept: the agent is gone, or run otherwise now. */
  discard?(kept: unknown): Promise<void>
  /** Lets go of what the runtime itself holds. Agents that can outlive the service go on. */
  close?(): Promise<void>
}

/** What orc.yaml says of how an agent is run. */
export interface AgentSettings {
  /** Which agent program, where the runtime runs one. */
  readonly program: string | undefined
  /** Under `with:`, as the runtime or the program defines them. */
  readonly settings: unknown
}

export interface AgentStart extends AgentSettings {
  readonly name: string
  /** What the agent must know of the protocol, its role and its permissions. */
  readonly prompt: string
  /** Where it works. */
  readonly cwd: string
  /** A private folder of this agent's, made when it is first needed; what is in it survives a restart. */
  readonly folder: string
  /** What an earlier session of this agent kept (`SessionPort.keep`); undefined for a new conversation. */
  readonly kept: unknown
  /** The word that marks its commands where anything on the screen could be mistaken for them. */
  readonly nonce: string
  /**
   * A way to the service in the agent's own name. The earlier token dies: ask only right before a process is started.
   * `isResumed`: it takes up an earlier one's conversation; what that one took and had not written down is looked for.
   */
  credentials(process?: { isResumed: boolean }): Promise<Credentials>
  /** Aborts when the agent is no longer wanted before it is there: `start` ends what it has started, and rejects. */
  readonly gone?: AbortSignal
  /**
   * Has a command carried out in the agent's own name, for agents that have no process to call the service from. With
   * the same key it acts once (C25). Never rejects: what goes wrong is in the receipt.
   */
  command?(said: SaidCommand, key: string): Promise<CommandAnswer>
}

export interface CommandAnswer {
  readonly receipt: Receipt
  /** Messages that the receipt brings to the agent: `arrived` is told once it has them. */
  readonly handedOut: readonly string[]
}

export interface Credentials {
  /** `http://127.0.0.1:7420`; MCP is at `/mcp`, hooks at `/hooks`. */
  readonly url: string
  readonly token: string
}

/** What a session tells the engine. */
export interface SessionPort {
  /**
   * The agent's own text, and nothing else (C4). Resolves when all it asks for was carried out and answered, so
   * that its place in a transcript may be kept; what was said twice with one key acts once (C25).
   */
  said(utterance: Utterance): Promise<void>
  /** A fact about the session, with what it was learnt from. */
  changed(state: SessionState, evidence: string): void
  /**
   * What keeps text from an agent that is idle, such as a person's draft. Told whenever it changes, also after the
   * delivery that met it has given up, until nothing does: `undefined`. Nothing is given to the agent before that.
   */
  waits(reason: string | undefined): void
  /** Nothing may be given to the agent now: it is paused, or everything is stopped. For what a session gives again by itself. */
  isHeld(): boolean
  /**
   * Evidence that messages came further, at any time, by their ids. `queued`: an interrupt, ours or a person's, took
   * them out of the conversation before they were answered, so that they have to be given again.
   */
  arrived(ids: readonly string[], state: 'submitted' | 'read' | 'queued', evidence: string): void
  /** The program asks a person for leave. Resolves with the verdict, or with undefined when `gone` aborts. */
  asked(question: PermissionQuestion, gone: AbortSignal): Promise<PermissionVerdict | undefined>
  /** How full the agent's context is, and what was spent. */
  used(usage: Usage): void
  /** What the session needs to be found again, or its conversation taken up, after a restart. JSON. Last one wins. */
  keep(value: unknown): Promise<void>
}

export interface Utterance {
  readonly text: string
  /** `pane`: read off a terminal, where anyone's text may stand: commands must carry the nonce. */
  readonly channel: 'transcript' | 'api' | 'pane'
  /** With a key, the text is whole; without one it is the next piece of a stream that ends with the turn. */
  readonly key?: string
}

export interface PermissionQuestion {
  /** The same for one dialog, however often it is asked. */
  readonly key: string
  /** The tool, such as `Bash`. */
  readonly tool: string
  /** What exactly it wants to do: the command, the file, the change. Shown to the person. */
  readonly input: Readonly<Record<string, unknown>>
  /** Why, in the program's words. */
  readonly reason?: string
}

export interface PermissionVerdict {
  readonly allow: boolean
  /** A person's remark; told to the agent with a no. */
  readonly comment?: string
}

/** C26: of the last answer, over the model's window; tokens since the start for the cost. */
export interface Usage {
  readonly model?: string
  readonly contextTokens?: number
  readonly contextWindow?: number
  readonly lines?: number
  readonly bytes?: number
  /** Spent by one answer, to be added up. `key` makes it count once. */
  readonly spent?: { key: string; input: number; output: number; cacheRead: number; cacheWrite: number }
}

/**
 * How far a text truly came, and how we know (C27). `queued`: it surely did not arrive and may be sent again.
 * `uncertain`: nobody knows, so that it must be looked up before it is sent again.
 */
export interface Arrival {
  readonly state: Extract<DeliveryState, 'queued' | 'submitted' | 'read' | 'uncertain'>
  readonly evidence: string
  /** Of a turn that did not fit as a whole: these first ones of its messages. The others surely did not arrive. */
  readonly ids?: readonly string[]
}

/** Of a delivery that was called off before any of it was written. */
export function noLongerWanted({ reason }: AbortSignal): Arrival {
  const why = reason instanceof Error ? reason.message : String(reason)
  return { state: 'queued', evidence: `no longer wanted: ${why}` }
}

/** What is put before the agent at once: answers to its commands, then messages in their envelopes. */
export interface Turn {
  readonly text: string
  /** Of the messages in it. Empty when it holds only answers. */
  readonly ids: readonly string[]
}

/** Where a message of an earlier attempt is. `absent`: surely never given to the agent. */
export interface Whereabouts {
  readonly at: 'submitted' | 'absent' | 'unknown'
  readonly evidence: string
}

/** One running agent. */
export interface Session {
  readonly state: SessionState
  /** What it says is read from a file, and so may be heard a moment after the end of its turn. */
  readonly heardLate?: boolean
  /**
   * Puts text before the agent as its next turn. Only called while it is idle, one at a time. When `gone` aborts before
   * anything was written, it is `queued`; what was written is finished.
   */
  deliver(turn: Turn, gone?: AbortSignal): Promise<Arrival>
  /**
   * Where messages of earlier attempts are, in their order, for deciding whether they may be sent again (C25): one look
   * for all of them. What of ours stands unsent is entered.
   */
  locate(ids: readonly string[]): Promise<readonly Whereabouts[]>
  /** A text of ours stands unsent, by an earlier service: it may hold no message, so that nobody would look for it. */
  hasUnsent?(): boolean
  /** Tells the agent something in passing, even while it is busy, without ending its turn (C2). */
  notice(text: string): Promise<void>
  /** Ends the current turn, for what cannot wait (C2). `stopped` only with evidence. */
  interrupt(): Promise<{ stopped: boolean; evidence: string }>
  /** A hook of the program calls. The answer is given back to the program as JSON. */
  hook?(event: unknown, gone: AbortSignal): Promise<unknown>
  /** Its program took the list of our tools over MCP: its model has them from now on. */
  toolsGiven?(): void
  /** What people see of the agent around its terminal. */
  show?(label: string): void
  /** How a person gets to see it: a command line for their terminal. */
  readonly view?: readonly string[]
  /** The end of what it showed, as plain text. */
  screen?(lines: number): Promise<string>
  /** What its terminal shows right now, where it has one. */
  picture?(): Promise<Picture>
  /** A person types into its terminal; deliveries wait until they let go. */
  takeOver?(by: string): Keyboard
  /** Ends it. Nothing of it is left: no process, no pane. */
  stop(): Promise<void>
  /** The service ends; the agent goes on if it can, and is found again by what was kept. */
  leave(): Promise<void>
}
