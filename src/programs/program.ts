import type { SessionState } from '../model/agent.ts'
import type { SettingsProblem } from '../model/settings.ts'
import type { AgentStart, Arrival, Session, SessionPort, Turn } from '../runtimes/runtime.ts'

/**
 * One agent program in a terminal: how it is launched without touching the user's own files, how its state and its
 * words are known, and its best way in. Where it runs (tmux) is none of its business.
 */
export interface Program {
  readonly name: string
  /** A new process can take up the conversation of an earlier one. */
  readonly resumes: boolean
  check(settings: unknown): SettingsProblem[]
  /** Writes the files it needs and says what to run. Throws an AppError when the program is not there. */
  launch(order: LaunchOrder): Promise<Launch>
  /** Follows the program in that pane: just launched, or found again after a restart of the service. */
  follow(order: FollowOrder, pane: Pane, port: SessionPort): Promise<ProgramSession>
}

export interface LaunchOrder
  extends Pick<AgentStart, 'name' | 'prompt' | 'settings' | 'cwd' | 'folder' | 'nonce'> {
  /** `http://127.0.0.1:7420`; MCP is at `/mcp`, hooks at `/hooks`. */
  readonly url: string
  /** The agent's own. It is in the program's environment as ORC_TOKEN; name it, never write it into a file or argv. */
  readonly token: string
  /** What `follow` kept of the last conversation, to take it up again; undefined for a new one. */
  readonly resume: unknown
}

export interface Launch {
  readonly argv: readonly string[]
  /** On top of what every agent gets: what the service was started with, TERM, ORC_URL, ORC_TOKEN, ORC_AGENT. */
  readonly env: Readonly<Record<string, string>>
  /** What `follow` must know of this launch, now and after a restart of the service. JSON, without secrets. */
  readonly kept: unknown
  /** `follow` will ask for `Pane.log()`, from the first byte on. */
  readonly isLogged?: boolean
}

export interface FollowOrder extends Pick<AgentStart, 'name' | 'settings' | 'cwd' | 'folder' | 'nonce'> {
  /** From `launch`, or what the session kept last (`port.keep`). */
  readonly kept: unknown
  /** Found again: it may be in the middle of anything. */
  readonly found: boolean
  /** Aborts when nobody wants it any more: its process is ended, and `follow` need not wait for it. */
  readonly gone?: AbortSignal | undefined
}

/** What the tmux runtime does itself: the pane's end, its title, its processes. */
export type ProgramSession = Pick<
  Session,
  'state' | 'heardLate' | 'deliver' | 'locate' | 'notice' | 'interrupt' | 'hook' | 'toolsGiven'
> & {
  /** The program's process ended. */
  exited(evidence: string): void
  /** Stops following. With `end`, also what the program keeps running beside the pane is ended. */
  close(how: 'leave' | 'end'): Promise<void>
}

/** A terminal that a program runs in. Every write passes the one guard. */
export interface Pane {
  /** The program's main process. */
  readonly pid: number
  /** The last line of a text of ours that was pasted and is not entered yet. */
  unsent?(): string | undefined
  /** The file that everything the program prints is appended to, for programs without a transcript. Starts it. */
  log(): Promise<string>
  /** The visible screen, soft-wrapped lines joined, without colours. */
  screen(): Promise<Screen>
  /**
   * Pastes the text and presses Enter, if and when the guard allows it: resolves `queued` if it did not within
   * `patienceMs`, else when `evidence` resolves, with what it says, or `uncertain` after `evidenceMs`.
   */
  paste(turn: Turn, manner: PasteManner): Promise<Arrival>
  /** Whether it has read all that was written into it; until then what it shows may be out of date. */
  hasReadInput(): Promise<boolean>
  /**
   * Presses Enter under `unsent`, if the program is idle and still holds it, and nothing else. Says whether it did, now
   * or so lately that the program may not have told of it yet.
   */
  enterUnsent(manner: Pick<PasteManner, 'state' | 'inputBox' | 'lagMs'>): Promise<boolean>
  /** Those messages are in the conversation: what stands in its input box is not ours. */
  taken(ids: readonly string[]): void
  /** A turn is about to be stopped. What it resolves to, called when it has ended, ends a command the program forgot. */
  watchStrays?(): Promise<() => Promise<void>>
  /** Presses keys by their tmux names, such as `Escape`; passes the guard's checks for copy mode and a dead pane only. */
  press(keys: readonly string[]): Promise<void>
}

export interface Screen {
  readonly lines: readonly string[]
  /** The same lines with their SGR sequences, unless nobody reads them: placeholders are dim, drafts are not. */
  readonly styled: readonly string[]
  readonly cursor: { readonly x: number; readonly y: number }
}

/** What stands in the program's input box. `unknown` keeps us from writing. */
export type InputBox = 'empty' | 'draft' | 'unknown'

export interface PasteManner {
  /** The program's word for its state right now; only `idle` lets a paste through. */
  state(): SessionState
  /** Reads the input box off the screen. */
  inputBox(screen: Screen): InputBox
  /** It reads the letters only. For their looks, tmux takes as long as for all the rest. */
  isPlain?: true
  /** Enter after that long: some programs swallow it when it comes with the paste. */
  enterAfterMs: number
  /** Whether the program takes a paste as one piece right now. Left out by those that always do while idle. */
  isBracketed?(): boolean
  /** Resolves with what proves that the program took the text. Never rejects. */
  evidence: Promise<Arrival>
  /** Enter is pressed once more when the text still stands in the input box after that long. */
  evidenceMs: number
  patienceMs: number
  /** How long the program's word for its state may lag behind an Enter, where it is not read off the screen. */
  lagMs?: number
  /** Aborts when the text is no longer wanted: then it is not written, unless it has been. */
  gone?: AbortSignal | undefined
}
