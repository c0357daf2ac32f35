import { formatId } from '../../base/ids.ts'
import type { Reader } from '../../store/store.ts'
import { describeAction, type RepositoryAction } from '../core/action.ts'
import { isConfidentialRole } from '../core/roles.ts'
import { type ActionRow, actionsOfDelivery, readActions } from '../store/actions.ts'
import { readDeliveries, readDelivery } from '../store/deliveries.ts'
import { readHalted } from '../store/health.ts'
import { type GithubWorkOutline, workOfDeliveries } from '../store/work.ts'

/** The work and the actions that an event led to so far. */
export interface EventTrail {
  delivery: string
  event: string
  state: string
  note?: string
  work: { role: string; agent: string; state: string; task_id?: string }[]
  actions: { agent: string; what: string; state: string; note?: string; request_id?: string; url?: string }[]
  /** No work is pending, except for requests that people have to decide. */
  settled: boolean
}

export async function trailOf(reader: Reader, id: string): Promise<EventTrail | undefined> {
  const delivery = await readDelivery(reader, id)
  if (delivery === undefined) return undefined
  const work = await workOfDeliveries(reader, [id])
  const actions = await actionsOfDelivery(reader, id)
  const isOpen =
    delivery.state === 'waiting' ||
    work.some(({ state }) => state === 'waiting' || state === 'delegated') ||
    actions.some(({ state }) => state === 'ready' || state === 'acting')
  return {
    delivery: id,
    event: delivery.event,
    state: delivery.state,
    ...(delivery.note === null ? {} : { note: delivery.note }),
    work: work.map(({ role, agent, state, task }) => ({
      role,
      agent,
      state,
      ...(task === null ? {} : { task_id: formatId('task', task) }),
    })),
    actions: actions.map(({ agent, action, state, note, request, url }) => ({
      agent,
      what: describeAction(JSON.parse(action) as RepositoryAction),
      state,
      ...(note === null ? {} : { note }),
      ...(request === null ? {} : { request_id: formatId('req', request) }),
      ...(url === null || url === '' ? {} : { url }),
    })),
    settled: !isOpen,
  }
}

/** Recent webhooks and actions for the operator, without anything about conduct (S3.15). */
interface GithubLog {
  events: {
    id: string
    event: string
    state: string
    at: number
    note?: string
    repository?: string
    number?: number
    work: { role: string; agent: string; state: string; task_id?: string }[]
  }[]
  actions: {
    key: string
    agent: string
    repository: string
    number?: number
    kind: string
    text: string
    fields: Record<string, unknown>
    state: string
    at: number
    confidence?: number
    rationale?: string
    request_id?: string
    url?: string
    note?: string
  }[]
  halted: { agent: string; failures: number; at: number }[]
}

export async function readGithubLog(reader: Reader, limit: number): Promise<GithubLog> {
  const deliveries = await readDeliveries(reader, limit)
  const work = await workOfDeliveries(
    reader,
    deliveries.map(({ id }) => id),
  )
  const byDelivery = Map.groupBy(work, ({ delivery }) => delivery)
  return {
    events: deliveries.map(({ id, event, state, note, received_at }) => {
      const parts = byDelivery.get(id) ?? []
      const about = parts[0]
      return {
        ...{ id, event, state, at: received_at },
        ...(note === null ? {} : { note }),
        ...(about === undefined ? {} : { repository: about.repository }),
        ...(about === undefined || about.number === null ? {} : { number: about.number }),
        work: parts.map(shownWork),
      }
    }),
    actions: (await readActions(reader, limit)).map(shownAction),
    halted: (await readHalted(reader)).map(({ agent, failures, halted_at }) => ({
      ...{ agent, failures, at: halted_at },
    })),
  }
}

function shownWork({ role, agent, state, task }: GithubWorkOutline) {
  return { role, agent, state, ...(task === null ? {} : { task_id: formatId('task', task) }) }
}

function shownAction(row: ActionRow): GithubLog['actions'][number] {
  const action = JSON.parse(row.action) as RepositoryAction
  const { kind, ...fields } = action
  // Only moderators read the words of a confidential role.
  const isConfidential = isConfidentialRole(row.work.slice(row.work.lastIndexOf('/') + 1))
  return {
    ...{ key: row.key, agent: row.agent, repository: row.repository, kind, fields, state: row.state },
    ...{ text: describeAction(action), at: row.created_at },
    ...(row.number === null ? {} : { number: row.number }),
    ...(row.confidence === null ? {} : { confidence: row.confidence }),
    ...(isConfidential || row.rationale === '' ? {} : { rationale: row.rationale }),
    ...(row.request === null ? {} : { request_id: formatId('req', row.request) }),
    ...(row.url === null ? {} : { url: row.url }),
    ...(row.note === null ? {} : { note: row.note }),
  }
}
