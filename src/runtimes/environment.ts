/**
 * Builds an agent's environment: the variables a program started by hand beside the service would have, since
 * builds and tests need them, minus the service's identity and plus the agent's own.
 */
import { AppError } from '../base/errors.ts'
import { SESSION_MARK } from './processes.ts'
import type { AgentCredentials } from './runtime.ts'

export interface EnvironmentOptions {
  /** The environment the service was started with. */
  readonly from: Readonly<NodeJS.ProcessEnv>
  /** Value of TERM. */
  readonly term: string
  /** Variables from the program and from `with.env` in orc.yaml. */
  readonly extra: Readonly<Record<string, string>>
  readonly agent: string
  readonly mark: string
  /** Path of our own executable, for hooks and `orc service mcp`. */
  readonly bin: string
  readonly credentials: AgentCredentials
}

/** Names a shell can set; bash exports functions under other names. */
export const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/

const STRIPPED = [
  // The service's own variables may hold the operator's token, or another agent's.
  /^ORC_/,
  // Set by whatever started the service: npm, a test runner, node with flags, a service manager.
  /^npm_|^INIT_CWD$|^VITEST/,
  /^NODE_(?:OPTIONS|CHANNEL_\w+|COMPILE_CACHE|UNIQUE_ID|V8_COVERAGE)$/,
  /^(?:NOTIFY_SOCKET|LISTEN_(?:FDS|FDNAMES|PID)|WATCHDOG_(?:PID|USEC)|INVOCATION_ID|JOURNAL_STREAM)$/,
  // Describe the terminal and shell the service was started in; the agent has its own terminal, or none.
  /^(?:TMUX|TMUX_PANE|TMUX_TMPDIR|STY|WINDOW|WINDOWID|GPG_TTY|SSH_TTY|COLUMNS|LINES)$/,
  /^(?:TERM|TERMCAP|TERM_PROGRAM|TERM_PROGRAM_VERSION|TERM_SESSION_ID|COLORTERM|VTE_VERSION|WT_SESSION)$/,
  /^(?:LC_TERMINAL|ITERM|KITTY|WEZTERM|ALACRITTY|KONSOLE|ZELLIJ)(?:_|$)/,
  /^(?:PWD|OLDPWD|SHLVL|_)$/,
  // Set by an agent that started the service: some programs would treat themselves as part of it, or refuse
  // to run.
  /^CLAUDECODE$|^CLAUDE_CODE_(?:ENTRYPOINT|SSE_PORT|SESSION|CHILD|PARENT|AGENT)/,
  /^(?:GEMINI_CLI|OPENCODE)$|^CODEX_SANDBOX/,
]

/** With these set, Gemini assumes a CI build, finds no input and exits; an agent has its own terminal. */
const CI_VARIABLE = /^(?:CI|CONTINUOUS_INTEGRATION)$|^CI_/

export function environmentOf(options: EnvironmentOptions): Record<string, string> {
  checkVariables(options.extra)
  const { url, token } = options.credentials
  const passed = Object.entries(inheritedEnvironment(options.from)).filter(
    ([name]) => !CI_VARIABLE.test(name),
  )
  return {
    ...Object.fromEntries(passed),
    TERM: options.term,
    ...options.extra,
    // Last, so that no setting can give an agent another agent's identity.
    ...{ ORC_URL: url, ORC_TOKEN: token, ORC_AGENT: options.agent, ORC_BIN: options.bin },
    [SESSION_MARK]: options.mark,
  }
}

/** The part of an environment that any program started for an agent may inherit. */
export function inheritedEnvironment(from: Readonly<NodeJS.ProcessEnv>): Record<string, string> {
  const passed: Record<string, string> = {}
  for (const [name, value] of Object.entries(from)) {
    const isPassed = VARIABLE.test(name) && !STRIPPED.some((pattern) => pattern.test(name))
    if (isPassed && value !== undefined) passed[name] = value
  }
  // Agents write UTF-8, whatever locale the service was started with.
  if (!passed.LANG && !passed.LC_ALL) passed.LANG = 'C.UTF-8'
  return passed
}

function checkVariables(variables: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(variables)) {
    if (VARIABLE.test(name) && !value.includes('\0')) continue
    throw new AppError('CONFIG_INVALID', `${JSON.stringify(name)} is not a valid environment variable`, {
      hint: 'Names under with.env may contain letters, digits and _; values must not contain NUL bytes.',
    })
  }
}
