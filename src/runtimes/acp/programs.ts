import type { Mentions } from '../../protocol/mentions.ts'

/** Agent programs whose ACP command is known. */
export interface BuiltIn {
  readonly command: string
  readonly args: readonly string[]
  /** How to install it. */
  readonly install: string
  /** How to log in, if it requires that first. */
  readonly login: string
  /** Default mode, if the agent offers it. */
  readonly mode?: string
  /**
   * Accepts a notice during a turn (`_session/steering`) without aborting its work. Claude's adapter offers
   * it too, but aborts the current response: its text and actions would be repeated.
   */
  readonly steers?: true
  /**
   * Takes MCP servers in the Claude SDK's options, so that our tools are available at once and not behind a
   * search. That SDK puts servers on a command line, so the token is only referenced, and Claude fills it in.
   */
  readonly takesClaudeOptions?: true
  /**
   * Names session files by minute and id, and opens a new one before it loads the old: resuming a
   * conversation in the minute it began overwrites it (Gemini 0.61).
   */
  readonly losesItsFirstMinute?: true
  readonly mentions?: Mentions
}

export const PROGRAMS = {
  gemini: {
    command: 'gemini',
    args: ['--acp'],
    install: 'npm install -g @google/gemini-cli',
    login: 'Run `gemini` once in a terminal and log in there.',
    losesItsFirstMinute: true,
  },
  opencode: {
    command: 'opencode',
    args: ['acp'],
    install: 'npm install -g opencode-ai',
    login: 'Run `opencode auth login` once in a terminal.',
  },
  codex: {
    command: 'codex-acp',
    args: [],
    install: 'npm install -g @agentclientprotocol/codex-acp',
    login: 'Run `codex login` once in a terminal.',
    // By default a guardian model decides what a person should be asked.
    mode: 'workspace-write',
    steers: true,
  },
  'claude-code': {
    command: 'claude-agent-acp',
    args: [],
    install: 'npm install -g @agentclientprotocol/claude-agent-acp',
    login: 'Run `claude` once in a terminal and log in there.',
    takesClaudeOptions: true,
    mentions: 'alone',
  },
} as const satisfies Record<string, BuiltIn>

export function isBuiltIn(name: string): name is keyof typeof PROGRAMS {
  return Object.hasOwn(PROGRAMS, name)
}

/** Known facts about a program; undefined for `any`. */
export function builtIn(name: string | undefined): BuiltIn | undefined {
  return name !== undefined && isBuiltIn(name) ? PROGRAMS[name] : undefined
}
