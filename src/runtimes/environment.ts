/**
 * What an agent finds around it: what a program would that is started by hand where the service was, since builds and
 * tests need whatever their user has set; with an identity of its own in place of the service's.
 */
import { AppError } from '../model/errors.ts'
import { SESSION_MARK } from './process-table.ts'
import type { Credentials } from './runtime.ts'

export interface EnvironmentOrder {
  /** What the service was started with. */
  readonly from: Readonly<NodeJS.ProcessEnv>
  /** The kind of terminal it runs in. */
  readonly term: string
  /** Its program's, and those of orc.yaml. */
  readonly further: Readonly<Record<string, string>>
  readonly agent: string
  readonly mark: string
  /** Our own executable, for hooks and `orc mcp`. */
  readonly bin: string
  readonly credentials: Credentials
}

/** Others, such as the functions that bash exports, no shell could set. */
export const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/

const NOT_PASSED_ON = [
  // The service's own: among them may be the operator's token, or another agent's.
  /^ORC_/,
  // Of who started it: npm, a test runner, node with its flags, a service manager.
  /^npm_|^INIT_CWD$|^VITEST/,
  /^NODE_(?:OPTIONS|CHANNEL_\w+|COMPILE_CACHE|UNIQUE_ID|V8_COVERAGE)$/,
  /^(?:NOTIFY_SOCKET|LISTEN_(?:FDS|FDNAMES|PID)|WATCHDOG_(?:PID|USEC)|INVOCATION_ID|JOURNAL_STREAM)$/,
  // Of the terminal and the shell it was started in: the agent has others, or none.
  /^(?:TMUX|TMUX_PANE|TMUX_TMPDIR|STY|WINDOW|WINDOWID|GPG_TTY|SSH_TTY|COLUMNS|LINES)$/,
  /^(?:TERM|TERMCAP|TERM_PROGRAM|TERM_PROGRAM_VERSION|TERM_SESSION_ID|COLORTERM|VTE_VERSION|WT_SESSION)$/,
  /^(?:LC_TERMINAL|ITERM|KITTY|WEZTERM|ALACRITTY|KONSOLE|ZELLIJ)(?:_|$)/,
  /^(?:PWD|OLDPWD|SHLVL|_)$/,
  // Of an agent that started it: with them, some programs take themselves for a part of that one, or refuse to run.
  /^CLAUDECODE$|^CLAUDE_CODE_(?:ENTRYPOINT|SSE_PORT|SESSION|CHILD|PARENT|AGENT)/,
  /^(?:GEMINI_CLI|OPENCODE)$|^CODEX_SANDBOX/,
]

/** By them Gemini takes itself for a step of a build, finds no input, and ends. An agent sits at a terminal of its own. */
const OF_A_BUILD = /^(?:CI|CONTINUOUS_INTEGRATION)$|^CI_/

export function environmentOf(order: EnvironmentOrder): Record<string, string> {
  mustBeVariables(order.further)
  const { url, token } = order.credentials
  const passed = Object.entries(passedOn(order.from)).filter(([name]) => !OF_A_BUILD.test(name))
  return {
    ...Object.fromEntries(passed),
    TERM: order.term,
    ...order.further,
    // Last: no setting can give an agent another's identity.
    ...{ ORC_URL: url, ORC_TOKEN: token, ORC_AGENT: order.agent, ORC_BIN: order.bin },
    [SESSION_MARK]: order.mark,
  }
}

/** What of it any program may have that is started for an agent. */
export function passedOn(from: Readonly<NodeJS.ProcessEnv>): Record<string, string> {
  const passed: Record<string, string> = {}
  for (const [name, value] of Object.entries(from)) {
    const isPassed = VARIABLE.test(name) && !NOT_PASSED_ON.some((pattern) => pattern.test(name))
    if (isPassed && value !== undefined) passed[name] = value
  }
  // Agents write UTF-8, whatever the service was started with.
  if (!passed.LANG && !passed.LC_ALL) passed.LANG = 'C.UTF-8'
  return passed
}

function mustBeVariables(variables: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(variables)) {
    if (VARIABLE.test(name) && !value.includes('\0')) continue
    throw new AppError('CONFIG_INVALID', `${JSON.stringify(name)} cannot be set as a variable`, {
      hint: 'Names under with.env are of letters, digits and _, and no value holds a NUL.',
    })
  }
}
