import { z } from 'zod'
import { problemsIn, type SettingsProblem } from '../../base/settings-problem.ts'
import { MENTIONS, type Mentions } from '../../protocol/mentions.ts'
import type { AgentSettings } from '../runtime.ts'

export const AcpSettings = z.strictObject({
  command: z
    .string()
    .min(1)
    .optional()
    .describe('Path or name of an executable that speaks ACP. Overrides the default of a built-in program.'),
  args: z
    .array(z.string())
    .optional()
    .describe('Arguments, added to those that a built-in program already has.'),
  env: z.record(z.string(), z.string()).optional().describe('Additional environment variables.'),
  model: z.string().min(1).optional().describe('ID of the model. The agent must offer it.'),
  mode: z
    .string()
    .min(1)
    .optional()
    .describe('ID of the session mode, such as plan or yolo. The agent must offer it.'),
  mentions: z
    .enum(MENTIONS)
    .optional()
    .describe('Where it treats @name in a message as a file to read: `alone`, or `anywhere`.'),
})
export type AcpSettings = z.output<typeof AcpSettings>

export function checkSettings({ program, settings }: AgentSettings): SettingsProblem[] {
  const name = program ?? 'any'
  if (name !== 'any' && !isBuiltIn(name)) {
    return [
      {
        path: [],
        message: `Unknown program for the runtime acp: ${name}`,
        hint: `Use one of ${Object.keys(PROGRAMS).join(', ')}, or program: any with a command.`,
      },
    ]
  }
  const parsed = AcpSettings.safeParse(settings ?? {})
  if (!parsed.success) {
    const hint = 'The runtime acp accepts: command, args, env, model, mode, mentions (all optional).'
    return problemsIn(parsed.error, hint)
  }
  if (name === 'any' && parsed.data.command === undefined) {
    return [
      {
        path: ['command'],
        message: 'program: any needs a command that speaks ACP',
        hint: 'Example: { command: my-agent, args: [--acp] }',
      },
    ]
  }
  return []
}

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
  readonly overwritesInFirstMinute?: true
  readonly mentions?: Mentions
}

const PROGRAMS = {
  gemini: {
    command: 'gemini',
    args: ['--acp'],
    install: 'npm install -g @google/gemini-cli',
    login: 'Run `gemini` once in a terminal and log in there.',
    overwritesInFirstMinute: true,
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

function isBuiltIn(name: string): name is keyof typeof PROGRAMS {
  return Object.hasOwn(PROGRAMS, name)
}

/** Known facts about a program; undefined for `any`. */
export function builtIn(name: string | undefined): BuiltIn | undefined {
  return name !== undefined && isBuiltIn(name) ? PROGRAMS[name] : undefined
}

export const LIMITS = {
  /** Timeout of each request while a session is opened. */
  answerMs: 60_000,
  /** A turn without any sign of the agent counts as uncertain then. Models may think long before their first word. */
  signMs: 120_000,
  /** Timeout for the end of a cancelled turn. */
  cancelMs: 10_000,
  /** Time for processes to end by themselves before they are killed. */
  graceMs: 3_000,
  /** A replay has ended after this much silence: some agents answer session/load before it ends. */
  quietMs: 300,
  /** Pause after a failed turn, doubled with each failure in a row. */
  failureMs: 5_000,
  lineBytes: 16 << 20,
}
export type AcpLimits = Readonly<typeof LIMITS>

/** Longest pause after failed turns. */
export const FAILURE_MS_MAX = 300_000
