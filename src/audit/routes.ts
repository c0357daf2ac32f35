import { wireEntry } from '../api/audit-feed.ts'
import { type ApiCall, type ApiContext, type RouteHandler, SENT } from '../api/handle-request.ts'
import { arrayFrame, LINES, streamJson } from '../api/http-response.ts'
import { parseTime } from '../api/request-input.ts'
import type { Store } from '../store/store.ts'
import { type AuditQuery, streamAudit, toEntry } from './store.ts'

export const readAudit: RouteHandler<'audit'> = async (context, call) => {
  const query = toAuditQuery(context, call)
  const { store } = context.engine
  if (call.incoming.headers.accept?.includes(LINES.type)) {
    await streamJson(call.outgoing, LINES, entries(store, query, '\n'))
  } else await streamJson(call.outgoing, arrayFrame('entries'), entries(store, query, ''))
  return SENT
}

async function* entries(store: Store, query: AuditQuery, end: string) {
  for await (const row of streamAudit(store, query)) yield JSON.stringify(wireEntry(toEntry(row))) + end
}

function toAuditQuery({ engine }: ApiContext, call: ApiCall<'audit'>): AuditQuery {
  const { since, until, agent, with: other, limit, after, type, class: visibility, text } = call.query
  const now = engine.clock.now()
  const name = (given: string) => engine.team().resolve(given) ?? given
  return {
    since: since === undefined ? undefined : parseTime(since, now),
    until: until === undefined ? undefined : parseTime(until, now),
    agent: agent === undefined ? undefined : name(agent),
    with: other === undefined ? undefined : name(other),
    type,
    class: visibility,
    text,
    after,
    limit,
    // With `after`, the limit applies to the next entries, otherwise to the newest.
    newest: after === undefined,
    visibleTo: call.isPerson ? undefined : call.callerName,
  }
}

export const checkAudit: RouteHandler<'auditVerify'> = ({ verifyAudit }) => verifyAudit()
