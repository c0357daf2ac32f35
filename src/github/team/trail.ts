import { formatId } from '../../base/ids.ts'
import type { Reader } from '../../store/store.ts'
import { type Action, describeAction } from '../core/action.ts'
import { actionsOfDelivery } from '../store/actions.ts'
import { readDelivery } from '../store/deliveries.ts'
import { workOfDeliveries } from '../store/work.ts'

/** What an event set in motion, as far as it has come. */
export interface EventTrail {
  delivery: string
  event: string
  state: string
  note?: string
  work: { role: string; agent: string; state: string; task_id?: string }[]
  actions: { agent: string; what: string; state: string; note?: string; request_id?: string; url?: string }[]
  /** Nothing more comes of it by itself; what people are asked about stays open until they decide. */
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
      what: describeAction(JSON.parse(action) as Action),
      state,
      ...(note === null ? {} : { note }),
      ...(request === null ? {} : { request_id: formatId('req', request) }),
      ...(url === null || url === '' ? {} : { url }),
    })),
    settled: !isOpen,
  }
}
