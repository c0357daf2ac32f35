/** What a session is doing right now, as far as facts show (C6). */
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

/** What an agent says of itself with update_status (S1.6). */
export const DECLARED_STATUSES = ['idle', 'working', 'blocked', 'completed'] as const
export type DeclaredStatus = (typeof DECLARED_STATUSES)[number]

/** Names go into prompts, panes, file names and URLs: no spaces, no separators, no dots in front. */
export const AGENT_NAME = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/

/** Names are ASCII, and so is their case: a Kelvin sign is no k. */
export function foldName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}

/** Names that stand for the service and its people; no agent and no person may bear them. */
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

/** Who is speaking, as the transport knows it (C3). Nothing inside a command can change it. */
export type Principal =
  | { kind: 'operator'; tokenId?: string }
  /** What they may do is said by the people of orc.yaml, looked up each time. */
  | { kind: 'person'; person: string; tokenId?: string }
  | { kind: 'agent'; agent: string; tokenId?: string }
