/** The state of a session, inferred from evidence only (C6). */
export const SESSION_STATES = [
  'initializing',
  'idle',
  'busy',
  'waiting_input',
  'paused',
  'error',
  'exited',
  'unknown',
] as const
export type SessionState = (typeof SESSION_STATES)[number]

/** The status an agent reports with update_status (S1.6). */
export const DECLARED_STATUSES = ['idle', 'working', 'blocked', 'completed'] as const
export type DeclaredStatus = (typeof DECLARED_STATUSES)[number]

/** Names appear in prompts, panes, file names and URLs: no spaces, separators or leading dots. */
export const AGENT_NAME = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/

/** Folds ASCII letters only: Unicode folding would turn the Kelvin sign into a k. */
export function foldName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}

/** Reserved for the service and its operator: agents and people can't have these names. */
export const OPERATOR = 'operator'
export const ORCHESTRATOR = 'orchestrator'
export const EVERYONE = '*'
export const RESERVED_NAMES: ReadonlySet<string> = new Set([
  OPERATOR,
  ORCHESTRATOR,
  'user',
  'system',
  'human',
  'anyone',
])

/** The sender, as authenticated by the transport (C3). No field of a command can change it. */
export type Principal =
  | { kind: 'operator'; tokenId?: string; isSession?: true }
  /** Their role is looked up in the people of orc.yaml for each call. `isSession`: a browser session, which ends. */
  | { kind: 'person'; person: string; tokenId?: string; isSession?: true }
  | { kind: 'agent'; agent: string; tokenId?: string }

/** Agent programs that the tmux and acp runtimes can start. Each checks its own settings under `with`. */
export const PROGRAMS = ['claude-code', 'codex', 'gemini', 'opencode', 'any'] as const
export type ProgramName = (typeof PROGRAMS)[number]
