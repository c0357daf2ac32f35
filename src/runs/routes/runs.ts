import { type ApiCall, type ApiContext, type RouteHandler, SENT } from '../../api/http/call.ts'
import { send } from '../../api/http/exchange.ts'
import { formatId } from '../../base/ids.ts'
import { htmlReport, markdownReport } from '../report/render.ts'
import { reportOf } from '../report/report.ts'
import { noSuchRun, type SeenRun } from '../store.ts'
import { wireRun, wireWholeRun } from './run-view.ts'

export const listRuns: RouteHandler<'runs'> = async ({ engine }, { query }) => {
  const { runs, clock } = engine
  const seen = await runs.list(query.state, query.limit)
  return { runs: seen.map((one) => wireRun(one, clock.now())) }
}

/** The run that the path names. */
export async function namedRun({ engine }: ApiContext, { params }: ApiCall): Promise<SeenRun> {
  const seen = await engine.runs.see(params.id!)
  if (seen !== undefined) return seen
  throw noSuchRun(params.id!)
}

export const showRun: RouteHandler<'run'> = async (context, call) => {
  const { runs, clock } = context.engine
  const seen = await namedRun(context, call)
  return await wireWholeRun(seen, clock.now(), async ({ name, state, asks }) => {
    const asked = state === 'asking' ? await runs.requestOf(seen.id, name, asks) : undefined
    const heldUp = runs.heldUp(seen, name)
    return {
      ...(asked === undefined ? {} : { requestId: formatId('req', asked.id) }),
      ...(heldUp === undefined ? {} : { heldUp }),
    }
  })
}

export const reportRun: RouteHandler<'runReport'> = async (context, call) => {
  const { run } = await namedRun(context, call)
  const report = reportOf(run, context.engine.clock.now())
  if (call.query.format === 'html') send(call.outgoing, 200, 'text/html; charset=utf-8', htmlReport(report))
  else send(call.outgoing, 200, 'text/markdown; charset=utf-8', markdownReport(report))
  return SENT
}

export const proposePlan: RouteHandler<'proposePlan'> = async ({ engine }, { body }) => {
  const { plan, problems, model } = await engine.planner.propose(body.goal, body.model)
  return { plan, problems: [...problems], model }
}
