import { type Call, type Desk, type RouteHandler, SENT } from '../api/http/call.ts'
import { wireEntry } from '../api/http/feed.ts'
import { arrayFrame, LINES, streamJson } from '../api/http/json-stream.ts'
import { moment } from '../messages/routes/messages.ts'
import type { Store } from '../store/store.ts'
import { type AuditQuery, streamAudit, toEntry } from './store.ts'

export const readAudit: RouteHandler<'audit'> = async (desk, call) => {
  const query = toAuditQuery(desk, call)
  const { store } = desk.engine
  if (call.incoming.headers.accept?.includes(LINES.type)) {
    await streamJson(call.outgoing, LINES, entries(store, query, '\n'))
  } else await streamJson(call.outgoing, arrayFrame('entries'), entries(store, query, ''))
  return SENT
}

async function* entries(store: Store, query: AuditQuery, end: string) {
  for await (const row of streamAudit(store, query)) yield JSON.stringify(wireEntry(toEntry(row))) + end
}

function toAuditQuery({ engine }: Desk, call: Call<'audit'>): AuditQuery {
  const { since, until, agent, with: other, limit, after, type, class: kept, text } = call.query
  const now = engine.clock.now()
  const name = (said: string) => engine.team().resolve(said) ?? said
  return {
    ...(since === undefined ? {} : { since: moment(since, now) }),
    ...(until === undefined ? {} : { until: moment(until, now) }),
    ...(agent === undefined ? {} : { agent: name(agent) }),
    ...(other === undefined ? {} : { with: name(other) }),
    ...(type === undefined ? {} : { type }),
    ...(kept === undefined ? {} : { class: kept }),
    ...(text === undefined ? {} : { text }),
    ...(after === undefined ? {} : { after }),
    // With `after`, the limit applies to the next entries, otherwise to the newest.
    ...(limit === undefined ? {} : { limit, newest: after === undefined }),
    ...(call.isOperator ? {} : { visibleTo: call.me }),
  }
}

export const checkAudit: RouteHandler<'auditVerify'> = ({ verifyAudit }) => verifyAudit()
