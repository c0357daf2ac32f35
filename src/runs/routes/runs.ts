import { send } from '../../api/http/answer.ts'
import { type Call, type Desk, type RouteHandler, SENT } from '../../api/http/call.ts'
import { formatId } from '../../base/ids.ts'
import { idempotencyKey } from '../../commands/routes/commands.ts'
import { htmlReport } from '../report/html.ts'
import { markdownReport } from '../report/markdown.ts'
import { reportOf } from '../report/report.ts'
import { noSuchRun, type SeenRun } from '../stored-runs.ts'
import { wireRun, wireWholeRun } from './run-view.ts'

export const startRun: RouteHandler<'startRun'> = async ({ engine }, { body, me, incoming }) => {
  const key = idempotencyKey(incoming.headers['idempotency-key'])
  const { plan, folder, file, name, concurrency } = body
  const order = {
    ...{ plan, folder },
    ...(file === undefined ? {} : { file }),
    ...(name === undefined ? {} : { name }),
    ...(concurrency === undefined ? {} : { concurrency }),
  }
  return await engine.runs.start(order, me, key)
}

export const listRuns: RouteHandler<'runs'> = async ({ engine }, { query }) => {
  const { runs, clock } = engine
  const seen = await runs.list(query.state, query.limit)
  return { runs: seen.map((one) => wireRun(one, clock.now())) }
}

/** The run that the path names. */
export async function namedRun({ engine }: Desk, { params }: Call): Promise<SeenRun> {
  const seen = await engine.runs.see(params.id!)
  if (seen !== undefined) return seen
  throw noSuchRun(params.id!)
}

export const showRun: RouteHandler<'run'> = async (desk, call) => {
  const { runs, clock } = desk.engine
  const seen = await namedRun(desk, call)
  return await wireWholeRun(seen, clock.now(), async ({ name, state, asks }) => {
    const asked = state === 'asking' ? await runs.requestOf(seen.id, name, asks) : undefined
    const heldUp = runs.heldUp(seen, name)
    return {
      ...(asked === undefined ? {} : { requestId: formatId('req', asked.id) }),
      ...(heldUp === undefined ? {} : { heldUp }),
    }
  })
}

export const resumeRun: RouteHandler<'resumeRun'> = async ({ engine }, { params, body, me }) => {
  const { plan, folder, file, concurrency, fresh, round } = body
  const order = {
    ...(plan === undefined ? {} : { plan }),
    ...(folder === undefined ? {} : { folder }),
    ...(file === undefined ? {} : { file }),
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(fresh === undefined ? {} : { fresh }),
    ...(round === undefined ? {} : { round }),
  }
  return await engine.runs.resume(params.id!, order, me)
}

export const cancelRun: RouteHandler<'cancelRun'> = ({ engine }, { params, body, me }) =>
  engine.runs.cancel(params.id!, me, body.reason ?? `${me} cancelled it`)

export const sendToRun: RouteHandler<'sendToRun'> = ({ engine }, { params, body, me }) =>
  engine.runs.send(params.id!, body, me)

export const reportRun: RouteHandler<'runReport'> = async (desk, call) => {
  const { run } = await namedRun(desk, call)
  const report = reportOf(run, desk.engine.clock.now())
  if (call.query.format === 'html') send(call.outgoing, 200, 'text/html; charset=utf-8', htmlReport(report))
  else send(call.outgoing, 200, 'text/markdown; charset=utf-8', markdownReport(report))
  return SENT
}

export const proposePlan: RouteHandler<'proposePlan'> = async ({ engine }, { body }) => {
  const { plan, problems, model } = await engine.planner.propose(body.goal, body.model)
  return { plan, problems: [...problems], model }
}
