import { SESSION_MARK } from '../processes.ts'
import type { Credentials } from '../runtime.ts'

/** What a program needs of its surroundings. The rest of the service's environment is none of the agent's business. */
const PASSED = new Set([
  ...['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LANGUAGE', 'TZ', 'TMPDIR', 'TERM', 'COLORTERM'],
  ...['SSH_AUTH_SOCK', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'NODE_EXTRA_CA_CERTS'],
  ...[
    'HTTP_PROXY',
    'HTTPS_PROXY',
    'ALL_PROXY',
    'NO_PROXY',
    'http_proxy',
    'https_proxy',
    'all_proxy',
    'no_proxy',
  ],
])
const PASSED_BEGINNINGS = ['LC_', 'XDG_']

/** Set by a Claude Code in whose terminal the service was started; with them, another one refuses to run. */
const OF_AN_OUTER_AGENT = /^CLAUDE_CODE_(ENTRYPOINT|SSE_PORT|SESSION|CHILD|PARENT|AGENT)/

export interface EnvironmentOrder {
  readonly from: Readonly<NodeJS.ProcessEnv>
  /** The program's own variables, by the beginnings of their names. */
  readonly variables: readonly string[]
  readonly extra: Readonly<Record<string, string>>
  readonly agent: string
  readonly mark: string
  /** Our own executable, for hooks and `orc mcp`. */
  readonly bin: string
  readonly credentials: Credentials
}

export function environmentOf(order: EnvironmentOrder): Record<string, string> {
  const beginnings = [...PASSED_BEGINNINGS, ...order.variables]
  const environment: Record<string, string> = {}
  for (const [name, value] of Object.entries(order.from)) {
    const isPassed = PASSED.has(name) || beginnings.some((beginning) => name.startsWith(beginning))
    if (value !== undefined && isPassed && !OF_AN_OUTER_AGENT.test(name)) environment[name] = value
  }
  // Ours come last: no setting can give an agent another's identity.
  return { ...environment, ...order.extra, ...identity(order) }
}

function identity({ agent, mark, bin, credentials }: EnvironmentOrder): Record<string, string> {
  return {
    ORC_URL: credentials.url,
    ORC_TOKEN: credentials.token,
    ORC_AGENT: agent,
    ORC_BIN: bin,
    [SESSION_MARK]: mark,
  }
}
