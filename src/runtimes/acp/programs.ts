import type { Mentions } from '../../wire/mentions.ts'

/** The agent programs whose way into ACP is known. */
export interface BuiltIn {
  readonly command: string
  readonly args: readonly string[]
  /** How to get it. */
  readonly install: string
  /** How to log in, for when it wants that first. */
  readonly login: string
  /** Taken unless the settings name one, if the agent offers it. */
  readonly mode?: string
  /**
   * Takes a notice into the running turn (`_session/steering`) without breaking off what it is doing. Claude's
   * adapter offers it too, but aborts the answer in progress: what it had said would be said, and done, twice.
   */
  readonly steers?: true
  /**
   * Takes its MCP servers in the options of the Claude SDK, by which our tools are there from the start and not behind
   * a search; and since that SDK puts servers onto a command line, the token is only named, for Claude to fill in.
   */
  readonly takesClaudeOptions?: true
  /**
   * Names its session files by minute and id, and opens a new one before it loads the old: a conversation that is
   * taken up again in the minute it began is overwritten (Gemini 0.61).
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
    // Its default lets a guardian model decide on what a person should be asked.
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

/** What is known of an agent by its program's name; nothing for `any`. */
export function builtIn(name: string | undefined): BuiltIn | undefined {
  return name !== undefined && isBuiltIn(name) ? PROGRAMS[name] : undefined
}
