import type { ApiCall, ApiContext, RouteHandler } from '../api/handle-request.ts'
import { AppError } from '../base/errors.ts'
import { parseId } from '../base/ids.ts'
import type { Person } from '../base/person.ts'
import { personBehind } from '../commands/team.ts'
import { findHumanRequest, readHumanRequests } from './people.ts'
import { viewRequests } from './request-view.ts'

export const listHumanRequests: RouteHandler<'humanRequests'> = async (context, call) => {
  const { state, limit } = call.query
  const { store } = context.engine
  const rows = await readHumanRequests(store, state, limit, call.isPerson ? undefined : call.callerName)
  return { requests: await viewRequests(store, rows, caller(context, call)) }
}

export const showHumanRequest: RouteHandler<'humanRequest'> = async (context, call) => {
  const { store } = context.engine
  const row = await findHumanRequest(store, parseId('req', call.params.id!) ?? 0)
  // The same answer for a request that doesn't exist and one that the caller may not see.
  if (row === undefined || (!call.isPerson && row.asker !== call.callerName)) {
    throw new AppError('NOT_FOUND', `There is no request ${call.params.id!.slice(0, 100)} for you`, {
      hint: '`orc inbox --all` lists them.',
    })
  }
  const [request] = await viewRequests(store, [row], caller(context, call))
  return request!
}

function caller({ engine }: ApiContext, call: Pick<ApiCall, 'caller'>): Person | undefined {
  return personBehind(engine.team(), call.caller.principal)
}
