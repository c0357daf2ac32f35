import type { AuditEntryAnswer } from '../../../src/api/contract.ts'
import type { Client } from '../../../src/client/client.ts'

export type AuditEntry = AuditEntryAnswer

export const AUDIT_LIMIT = 1000

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

interface Reading {
  client: Client
  /** The answer of the same query before, if it is still cached. */
  before: unknown
}

/**
 * `on`: topics of audit events (`task.created` has the topic `task`) that make the answer outdated. `everyMs`: pause
 * between two reads, since a busy team writes hundreds of events a second.
 */
function query<Args extends unknown[], T>(
  on: readonly string[] | 'all',
  load: (reading: Reading, ...args: Args) => Promise<T>,
  everyMs = 500,
) {
  return { on, load, everyMs }
}

/**
 * Every query of the page. The key of a query is its name here and its arguments, so no two components can load
 * different data under one key.
 */
export const QUERIES = {
  // Read once, to show the team before its deliveries are counted.
  agents: query([], ({ client }) => client.agents()),
  state: query(TEAM_TOPICS, ({ client }) => client.state()),
  agentActions: query(TEAM_TOPICS, ({ client }, agent: string) => client.agentActions(agent)),
  openRequests: query(
    ['human', 'token', 'config'],
    async ({ client }) => (await client.humanRequests({ state: 'open', limit: 1000 })).requests,
    150,
  ),
  decidedRequests: query(['human', 'token', 'config'], async ({ client }) =>
    (await client.humanRequests({ state: 'all', limit: 200 })).requests
      .filter(({ state }) => state !== 'open')
      .toReversed(),
  ),
  humanRequest: query(['human'], ({ client }, id: string) => client.humanRequest(id)),
  tasks: query(
    ['task', 'message', 'human'],
    async ({ client }, state: 'open' | 'all') => (await client.tasks({ state, limit: 1000 })).tasks,
  ),
  task: query(['task', 'message', 'delivery', 'human'], ({ client }, id: string) => client.task(id)),
  messages: query(
    ['message', 'delivery'],
    async ({ client }, filter: NonNullable<Parameters<Client['messages']>[0]>) =>
      (await client.messages(filter)).messages,
  ),
  // The last four explain why a delivery waits.
  message: query(['delivery', 'message', 'session', 'action', 'terminal', 'team'], ({ client }, id: string) =>
    client.message(id),
  ),
  transcript: query(
    ['message', 'delivery', 'session', 'command', 'agent'],
    async ({ client }, agent: string) => {
      const [{ said }, { messages }] = await Promise.all([
        client.transcript(agent),
        client.messages({ agent, limit: 60 }),
      ])
      return { said, messages }
    },
    1000,
  ),
  scrollback: query(
    ['session'],
    async ({ client }, agent: string, lines: number) => (await client.terminal(agent, { lines })).screen,
    1000,
  ),
  prompt: query(['config'], async ({ client }, agent: string) => (await client.prompt(agent)).prompt),
  runs: query(['run'], async ({ client }) => (await client.runs({ limit: 200 })).runs.toReversed()),
  run: query(['run', 'task', 'human'], ({ client }, id: string) => client.run(id)),
  runLog: query(
    ['run'],
    ({ client }, run: string, agent: string, attempt: number) => client.runLog(run, agent, { attempt }),
    1000,
  ),
  runOutput: query(
    ['run'],
    ({ client }, run: string, agent: string, path: string) => client.runOutput(run, agent, path),
    1000,
  ),
  github: query(['github', 'task', 'human', 'config'], ({ client }) => client.github({ limit: 200 })),
  // No event may mention a flag: the page follows the moderation stream instead.
  moderation: query(
    [],
    async ({ client }, state: 'open' | 'all') => (await client.moderation({ state, limit: 100 })).flags,
  ),
  rulesMatrix: query(['config', 'service'], ({ client }, offset: number, limit: number) =>
    client.rulesMatrix({ offset, limit }),
  ),
  explain: query(['config', 'service'], ({ client }, rule: Parameters<Client['explain']>[0]) =>
    client.explain(rule),
  ),
  audit: query(
    'all',
    ({ client, before }, filter: Record<string, string>) =>
      loadNewerEntries(client, filter, before as AuditEntry[] | undefined),
    1500,
  ),
  // An audit entry never changes.
  auditEntry: query([], async ({ client }, seq: number) => {
    for await (const entry of client.audit({ after: seq - 1, limit: 1 })) return entry
    return null
  }),
  figures: query(
    'all',
    ({ client }, span: NonNullable<Parameters<Client['figures']>[0]>['span']) => client.figures({ span }),
    3000,
  ),
}

/** Newest first. The audit log only grows, so this reads only the entries since `before`. */
async function loadNewerEntries(
  client: Client,
  filter: Record<string, string>,
  before: readonly AuditEntry[] = [],
): Promise<AuditEntry[]> {
  const after = before[0]?.seq
  const fresh: AuditEntry[] = []
  const page = { ...filter, limit: AUDIT_LIMIT, ...(after === undefined ? {} : { after }) }
  for await (const entry of client.audit(page)) fresh.push(entry)
  // More than a page since then: start over with the newest entries.
  if (after !== undefined && fresh.length === AUDIT_LIMIT) return loadNewerEntries(client, filter)
  return [...fresh.toReversed(), ...before].slice(0, AUDIT_LIMIT)
}

export type QueryName = keyof typeof QUERIES
type Load<Name extends QueryName> = (typeof QUERIES)[Name]['load']
export type QueryArgs<Name extends QueryName> =
  Parameters<Load<Name>> extends [Reading, ...infer Args] ? Args : never
export type QueryData<Name extends QueryName> = Awaited<ReturnType<Load<Name>>>
