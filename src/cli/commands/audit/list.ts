import type { AuditEntryAnswer, QueryOf } from '../../../api/contract.ts'
import { matchesQuery } from '../../../audit/matches-query.ts'
import type { Client } from '../../../client/client.ts'
import { lastSequence, openClient } from '../../connection/client.ts'
import { usage } from '../../errors.ts'
import { complain, paint, print, printJson } from '../../output/print.ts'
import { untilInterrupted } from '../../signals.ts'
import type { Invocation, Verb } from '../../verb.ts'

/** Number of earlier entries that --follow shows by default. */
const TAIL = 10
const CLASSES = ['public', 'internal', 'private']

export const verb: Verb = {
  name: 'audit list',
  summary: 'show everything that was said and done, oldest first',
  options: [
    {
      name: 'follow',
      short: 'f',
      summary: `keep running and show new entries; starts with the last ${TAIL}`,
    },
    { name: 'since', value: 'TIME', summary: '10m, 2h, 1d, or a timestamp' },
    { name: 'until', value: 'TIME', summary: '10m, 2h, 1d, or a timestamp' },
    { name: 'agent', value: 'NAME', summary: 'entries by or about this agent' },
    { name: 'with', value: 'NAME', summary: 'with --agent: entries between the two' },
    { name: 'type', value: 'TYPE', summary: 'message.accepted, or message for every type under it' },
    { name: 'class', value: 'CLASS', summary: CLASSES.join(', '), choices: CLASSES },
    { name: 'text', value: 'TEXT', summary: 'entries that contain this text' },
    { name: 'limit', value: 'N', summary: 'only the newest N entries (default: all)' },
  ],
  examples: [
    'orc audit list --since 10m',
    'orc audit --follow --agent Worker',
    'orc audit --agent Master --with Worker --type message',
    'orc audit --type security --json',
  ],

  async run(invocation) {
    const { location, flag, json } = invocation
    const query = queryOf(invocation)
    const client = await openClient(location)
    const show = (entry: AuditEntryAnswer) => (json ? printJson(entry) : print(entryLine(entry)))
    if (!flag('follow')) {
      let isEmpty = true
      for await (const entry of client.audit(query)) {
        show(entry)
        isEmpty = false
      }
      // With a typo in a filter, an empty list would look as if nothing had happened.
      if (isEmpty && !json && Object.keys(query).length > 0) complain(await nothingFound(client, query))
      return 0
    }
    if (query.until !== undefined) {
      throw usage("--follow can't be combined with --until", 'Drop one of them.')
    }
    return await untilInterrupted((signal) => follow(client, query, show, signal))
  },
}

type AuditListQuery = QueryOf<'audit'>

function queryOf({ given }: Invocation): AuditListQuery {
  const query = given('since', 'until', 'agent', 'with', 'type', 'class', 'text', 'limit')
  if (query.with !== undefined && query.agent === undefined) {
    throw usage('--with needs --agent', 'Example: --agent Master --with Worker')
  }
  return query as AuditListQuery
}

/** An unknown name isn't an error: the audit still has entries of agents that were removed from orc.yaml. */
async function nothingFound(client: Client, { agent, with: other }: AuditListQuery): Promise<string> {
  const { agents } = await client.agents()
  const known = agents.map(({ name }) => name)
  const unknown = [agent, other].filter((name) => name !== undefined && !known.includes(name))
  if (unknown.length === 0) return 'No entries match.'
  return `No entries match; ${unknown.join(' and ')} ${unknown.length === 1 ? 'is not an agent' : 'are not agents'} in this team. Agents: ${known.join(', ')}.`
}

async function follow(
  client: Client,
  query: AuditListQuery,
  show: (entry: AuditEntryAnswer) => void,
  signal: AbortSignal,
) {
  let last = await lastSequence(client, signal)
  const before = query.since === undefined && query.limit === undefined ? { ...query, limit: TAIL } : query
  for await (const entry of client.audit(before, { signal })) {
    show(entry)
    last = Math.max(last, entry.seq)
  }
  for await (const entry of client.events({ after: last, signal })) {
    if (matchesQuery(query, entry)) show(entry)
  }
}

/** The service formats the line and removes control characters. */
function entryLine(entry: AuditEntryAnswer): string {
  if (entry.type.startsWith('security.')) return paint('red', entry.line)
  return /\.(blocked|refused|rejected|failed|expired|parked)$/.test(entry.type)
    ? paint('yellow', entry.line)
    : entry.line
}
