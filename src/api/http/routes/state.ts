import { rosterOf } from '../../../agents/agents.ts'
import { AppError } from '../../../base/errors.ts'
import { wireHalt } from '../../../halt/routes.ts'
import { countOpen } from '../../../messages/store/deliveries.ts'
import { countOpenRequests } from '../../../people/store/human-requests.ts'
import { send } from '../answer.ts'
import { type RouteHandler, SENT } from '../call.ts'
import { openApi } from '../openapi.ts'
import { demand } from '../permission.ts'

export const showHealth: RouteHandler<'health'> = ({ engine }) => {
  try {
    engine.store.demand()
  } catch {
    // Where the store lies is not for anyone to know.
    throw new AppError('STORE_UNAVAILABLE', 'The disk of the store failed', {
      hint: 'Check the disk, then restart the service; its log says more.',
    })
  }
  const [trouble] = engine.runs.troubles()
  return {
    status: 'ok',
    ...(engine.halt.current() === undefined ? {} : { halted: true }),
    ...(trouble === undefined
      ? {}
      : { trouble: trouble.isFull ? 'the disk is full: a run waits for room' : 'a run cannot be stored' }),
  }
}

export const showState: RouteHandler<'state'> = async (desk, call) => {
  const { engine } = desk
  const { store } = engine
  const team = engine.team()
  demand(team, call, 'query_state')
  const { file, loadedAt, problem } = desk.configStatus()
  const halted = engine.halt.current()
  const troubles = engine.runs.troubles()
  return {
    version: desk.version,
    pid: process.pid,
    started_at: new Date(desk.startedAt).toISOString(),
    // Where things lie, and what orc.yaml says, is the operator's business.
    store: { engine: store.engine, place: call.isOperator ? desk.storePlace : '', pending: store.pending() },
    config: {
      ...(file === undefined || !call.isOperator ? {} : { file }),
      loaded_at: new Date(loadedAt).toISOString(),
      ...(problem === undefined || !call.isOperator ? {} : { problem }),
    },
    ...(halted === undefined ? {} : { halt: wireHalt(halted) }),
    ...(troubles.length === 0 || !call.isOperator
      ? {}
      : { troubles: troubles.map(({ run, text }) => ({ run_id: run, text })) }),
    ...(engine.github === undefined || team.config.github === undefined
      ? {}
      : { github: await engine.github.state() }),
    agents: await rosterOf(store, team, engine),
    deliveries: await countOpen(store),
    open_requests: await countOpenRequests(store),
  }
}

export const stopService: RouteHandler<'stop'> = ({ onStop }, { body, outgoing }) => {
  // The answer goes out first; then the one who asked waits for the process to end.
  outgoing.once('finish', () => onStop?.(body.agents))
  return { status: 'stopping', pid: process.pid }
}

export const showMetrics: RouteHandler<'metrics'> = async ({ metrics }, { outgoing }) => {
  const { type, text } = await metrics.render()
  send(outgoing, 200, type, text)
  return SENT
}

export const showOpenApi: RouteHandler<'openapi'> = ({ engine, version }) => openApi(engine.registry, version)
