/** Events about who is in the team and what they do. `action`: somebody paused, started or stopped an agent. */
const TEAM_TOPICS = [
  'session',
  'agent',
  'action',
  'message',
  'delivery',
  'human',
  'halt',
  'config',
  'service',
  'spend',
  'context',
  'team',
  'terminal',
]

interface RefreshRule {
  /** Topics of audit events (`task.created` has the topic `task`) that make the answer outdated. */
  on: readonly string[] | 'all'
  /** Pause between two reads: a busy team writes hundreds of events a second. */
  everyMs: number
}

const rule = (on: RefreshRule['on'], everyMs = 500): RefreshRule => ({ on, everyMs })

/** Maps events to the routes whose cached answers they invalidate. A query key starts with the name of its route. */
export const REFRESH = {
  // Read once, to show the team before its deliveries are counted.
  agents: rule([]),
  state: rule(TEAM_TOPICS),
  agentActions: rule(TEAM_TOPICS),
  humanRequests: rule(['human', 'token', 'config'], 150),
  humanRequest: rule(['human']),
  tasks: rule(['task', 'message', 'human']),
  task: rule(['task', 'message', 'delivery', 'human']),
  messages: rule(['message', 'delivery']),
  // The last four tell why a delivery waits.
  message: rule(['delivery', 'message', 'session', 'action', 'terminal', 'team']),
  transcript: rule(['message', 'delivery', 'session', 'command', 'agent'], 1000),
  terminal: rule(['session'], 1000),
  prompt: rule(['config']),
  runs: rule(['run']),
  run: rule(['run', 'task', 'human']),
  runLog: rule(['run'], 1000),
  runOutput: rule(['run'], 1000),
  github: rule(['github', 'task', 'human', 'config']),
  // No event may mention a flag: the page follows the moderation stream instead.
  moderation: rule([]),
  rulesMatrix: rule(['config', 'service']),
  explain: rule(['config', 'service']),
  audit: rule('all', 1500),
  // An audit entry never changes.
  auditEntry: rule([]),
  figures: rule('all', 3000),
} satisfies Record<string, RefreshRule>

export type QueryRoute = keyof typeof REFRESH
export type ServiceQueryKey = readonly [QueryRoute, ...unknown[]]
