import type { SessionState } from '../base/agent.ts'
import type { SettingsProblem } from '../base/settings-problem.ts'
import type { AgentStart, DeliveryResult, Session, SessionPort, Turn } from '../runtimes/runtime.ts'

/**
 * An agent program in a terminal: how to launch it without touching the user's files, how to know its state
 * and its text, and how best to deliver to it. Does not depend on the runtime (tmux).
 */
export interface AgentProgram {
  readonly name: string
  /** A new process can resume the conversation of an earlier one. */
  readonly resumes: boolean
  check(settings: unknown): SettingsProblem[]
  /**
   * Writes the files it needs and returns the command to run. Throws an AppError if the program is not
   * installed.
   */
  launch(options: ProgramLaunchOptions): Promise<Launch>
  /** Follows the program in that pane: just launched, or found running after a restart of the service. */
  follow(request: ProgramFollowOptions, pane: Pane, port: SessionPort): Promise<ProgramSession>
}

export interface ProgramLaunchOptions
  extends Pick<AgentStart, 'name' | 'prompt' | 'settings' | 'cwd' | 'folder' | 'nonce'> {
  /** `http://127.0.0.1:7420`; MCP is at `/mcp`, hooks at `/hooks`. */
  readonly url: string
  /**
   * The agent's own token. The program's environment has it as ORC_TOKEN; refer to it, never write it into a
   * file or argv.
   */
  readonly token: string
  /** State saved by `follow` for the last conversation, to resume it; undefined for a new one. */
  readonly resume: unknown
}

export interface Launch {
  readonly argv: readonly string[]
  /** In addition to every agent's environment: the service's own, TERM, ORC_URL, ORC_TOKEN, ORC_AGENT. */
  readonly env: Readonly<Record<string, string>>
  /** Needed by `follow` for this launch, now and after a restart of the service. JSON, without secrets. */
  readonly savedState: unknown
  /** `follow` will call `Pane.log()` and needs it from the first byte. */
  readonly isLogged?: boolean
}

export interface ProgramFollowOptions
  extends Pick<AgentStart, 'name' | 'settings' | 'cwd' | 'folder' | 'nonce'> {
  /** From `launch`, or the state the session saved last. */
  readonly savedState: unknown
  /** Found running: it may be in any state. */
  readonly isReattached: boolean
  /**
   * Aborts when the agent is no longer wanted: its process is being ended, and `follow` need not wait for it.
   */
  readonly signal?: AbortSignal | undefined
}

/** A session without the parts that the tmux runtime adds: the pane's end, its title, its processes. */
export type ProgramSession = Pick<
  Session,
  'state' | 'hasDelayedOutput' | 'deliver' | 'locate' | 'notice' | 'interrupt' | 'hook' | 'onToolsListed'
> & {
  /** The program's process ended. */
  onExit(evidence: string): void
  /** Stops following. `end` also removes files and sockets that the program left beside its pane. */
  close(how: 'leave' | 'end'): Promise<void>
}

/** The terminal that a program runs in. Every write passes the one guard. */
export interface Pane {
  /** The program's main process. */
  readonly pid: number
  /** The last line of our text that was pasted but not submitted yet. */
  pendingText?(): string | undefined
  /**
   * Starts appending everything the program prints to a file, and returns its path; for programs without a
   * transcript.
   */
  log(): Promise<string>
  /** The visible screen with soft-wrapped lines joined. */
  screen(): Promise<PaneScreen>
  /**
   * Pastes the text and presses Enter once the guard allows it. Resolves with `queued` if that did not happen
   * within `patienceMs`, else with `evidence`, or with `uncertain` after `evidenceMs`.
   */
  paste(turn: Turn, pasteOptions: PasteOptions): Promise<DeliveryResult>
  /** Whether it has read all its input; until then the screen may be outdated. */
  hasReadInput(): Promise<boolean>
  /**
   * Presses Enter for our pending text if the program is idle and still shows it. Returns whether it did, now
   * or so recently that the program may not have reported it yet.
   */
  submitPending(options: Pick<PasteOptions, 'state' | 'inputBox' | 'lagMs'>): Promise<boolean>
  /** These messages are in the conversation, so text in the input box is not ours. */
  markAccepted(ids: readonly string[]): void
  /**
   * Call before a turn is interrupted; call the result once it has ended, to end a command the program
   * forgot.
   */
  watchOrphans?(): Promise<() => Promise<void>>
  /** Presses keys by their tmux names, such as `Escape`; checks only for copy mode and a dead pane. */
  press(keys: readonly string[]): Promise<void>
}

export interface PaneScreen {
  readonly lines: readonly string[]
  /** The same lines with SGR sequences, unless `isPlain`: placeholders are dim, drafts are not. */
  readonly styled: readonly string[]
  readonly cursor: { readonly x: number; readonly y: number }
}

/** Content of the program's input box. `unknown` blocks writing. */
export type InputBox = 'empty' | 'draft' | 'unknown'

export interface PasteOptions {
  /** The state the program reports now; only `idle` allows a paste. */
  state(): SessionState
  /** Reads the input box off the screen. */
  inputBox(screen: PaneScreen): InputBox
  /** Skips styles, which doubles the speed of a snapshot. */
  isPlain?: true
  /** Delay of Enter: some programs swallow it if it comes with the paste. */
  enterAfterMs: number
  /** Whether the program accepts bracketed paste now. Omitted by programs that always do while idle. */
  isBracketed?(): boolean
  /** Resolves with the evidence that the program accepted the text. Never rejects. */
  evidence: Promise<DeliveryResult>
  /** Press Enter once more if the text is still in the input box after this long. */
  evidenceMs: number
  patienceMs: number
  /** How long the reported state may lag behind an Enter, if it is not read off the screen. */
  lagMs?: number
  /** Aborts when the text is no longer wanted: it is not written, unless it already was. */
  signal?: AbortSignal | undefined
}
