import type { SessionState } from '../model/agent.ts'
import type { DeliveryState } from '../model/message.ts'

/** Where an agent runs and how text reaches it: in process here; a tmux pane or ACP elsewhere. */
export interface Runtime {
  readonly name: string
  /** Checks an agent's settings when orc.yaml is read; each problem names the path inside them. */
  check(settings: unknown): SettingsProblem[]
  start(agent: AgentStart, port: SessionPort): Promise<Session>
}

export interface SettingsProblem {
  path: (string | number)[]
  message: string
  hint: string
}

export interface AgentStart {
  name: string
  /** What the agent must know of the protocol, its role and its permissions. */
  prompt: string
  settings: unknown
}

/** What a session tells the engine. */
export interface SessionPort {
  /** The agent's own text, in pieces of any size. Nothing else may come this way (C4). */
  said(text: string): void
  /** A fact about the session, with what it was learnt from. */
  changed(state: SessionState, evidence: string): void
}

/**
 * How far a text truly came, and how we know (C27). `queued`: it surely did not arrive and may be sent again.
 * `uncertain`: nobody knows, so that it must be looked up before it is sent again.
 */
export interface Arrival {
  state: Extract<DeliveryState, 'queued' | 'submitted' | 'read' | 'uncertain'>
  evidence: string
}

/** One running agent. After `stop` nothing of it is left. */
export interface Session {
  readonly state: SessionState
  /** Puts text before the agent as its next turn. Only called while it is idle. */
  deliver(text: string): Promise<Arrival>
  /** Tells the agent something in passing, even while it is busy, without ending its turn (C2). */
  notice(text: string): Promise<void>
  /** Ends the current turn, for what cannot wait (C2). */
  interrupt(): Promise<void>
  stop(): Promise<void>
}
