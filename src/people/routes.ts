import type { AnswerOf } from '../api/contract.ts'
import type { ApiCall, ApiContext, RouteHandler } from '../api/http/call.ts'
import { AppError } from '../base/errors.ts'
import { parseId } from '../base/ids.ts'
import type { Person } from '../base/person.ts'
import { personBehind } from '../commands/team.ts'
import type { HumanRequest } from './human-request.ts'
import { findHumanRequest, readHumanRequests } from './people.ts'
import { viewRequests } from './request-view.ts'
import { maySay } from './verdict-rules.ts'

type HumanRequestAnswer = AnswerOf<'humanRequests'>['requests'][number]

export const listHumanRequests: RouteHandler<'humanRequests'> = async (context, call) => {
  const { state, limit } = call.query
  const { store } = context.engine
  const rows = await readHumanRequests(store, state, limit, call.isPerson ? undefined : call.callerName)
  const requests = await viewRequests(store, rows)
  return { requests: requests.map((request) => wireRequest(request, caller(context, call))) }
}

export const showHumanRequest: RouteHandler<'humanRequest'> = async (context, call) => {
  const { store } = context.engine
  const row = await findHumanRequest(store, parseId('req', call.params.id!) ?? 0)
  // Answer the same whether it does not exist or the caller may not see it.
  if (row === undefined || (!call.isPerson && row.asker !== call.callerName)) {
    throw new AppError('NOT_FOUND', `There is no request ${call.params.id!.slice(0, 100)} for you`, {
      hint: '`orc inbox --all` lists them.',
    })
  }
  const [request] = await viewRequests(store, [row])
  return wireRequest(request!, caller(context, call))
}

export const decideHumanRequest: RouteHandler<'decide'> = async (context, call) => {
  const { decision, comment, fields, hash, insist } = call.body
  const { verdicts } = context.engine
  const { request, receipt } = await verdicts.decide(call.caller.principal, call.params.id!, {
    decision,
    ...(comment === undefined ? {} : { comment }),
    ...(fields === undefined ? {} : { fields }),
    ...(hash === undefined ? {} : { hash }),
    ...(insist === undefined ? {} : { insist }),
  })
  return {
    request: wireRequest(request, caller(context, call)),
    ...(receipt === undefined ? {} : { receipt: receipt as AnswerOf<'decide'>['receipt'] }),
  }
}

function caller({ engine }: ApiContext, call: Pick<ApiCall, 'caller'>): Person | undefined {
  return personBehind(engine.team(), call.caller.principal)
}

function wireRequest(request: HumanRequest, person: Person | undefined): HumanRequestAnswer {
  const { createdAt, expiresAt, decidedAt, decidedBy, taskId, allowOther, ...same } = request
  const { choices, approvers, approvals, decisions, ...rest } = same
  return {
    ...rest,
    ...(taskId === undefined ? {} : { task_id: taskId }),
    ...(choices === undefined ? {} : { choices: [...choices] }),
    ...(allowOther === undefined ? {} : { allow_other: allowOther }),
    ...(approvers === undefined ? {} : { approvers: [...approvers] }),
    approvals: [...approvals],
    decisions: person !== undefined && maySay(request, person) ? [...decisions] : [],
    created_at: createdAt,
    expires_at: expiresAt,
    ...(decidedAt === undefined ? {} : { decided_at: decidedAt }),
    ...(decidedBy === undefined ? {} : { decided_by: decidedBy }),
  }
}
