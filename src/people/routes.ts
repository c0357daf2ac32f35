import type { AnswerOf } from '../api/contract.ts'
import type { Call, Desk, RouteHandler } from '../api/http/call.ts'
import { AppError } from '../base/errors.ts'
import { parseId } from '../base/ids.ts'
import type { Person } from '../base/person.ts'
import { personBehind } from '../commands/team.ts'
import type { HumanRequest } from './human-request.ts'
import { viewRequests } from './request-view.ts'
import { findHumanRequest, readHumanRequests } from './store/human-requests.ts'
import { maySay } from './verdict-rules.ts'

type Wire = AnswerOf<'humanRequests'>['requests'][number]

export const listHumanRequests: RouteHandler<'humanRequests'> = async (desk, call) => {
  const { state, limit } = call.query
  const { store } = desk.engine
  const rows = await readHumanRequests(store, state, limit, call.isOperator ? undefined : call.me)
  const requests = await viewRequests(store, rows)
  return { requests: requests.map((request) => wireRequest(request, caller(desk, call))) }
}

export const showHumanRequest: RouteHandler<'humanRequest'> = async (desk, call) => {
  const { store } = desk.engine
  const row = await findHumanRequest(store, parseId('req', call.params.id!) ?? 0)
  // Whether it is there is nobody else's business either.
  if (row === undefined || (!call.isOperator && row.asker !== call.me)) {
    throw new AppError('NOT_FOUND', `There is no request ${call.params.id!.slice(0, 100)} for you`, {
      hint: '`orc inbox --all` lists them.',
    })
  }
  const [request] = await viewRequests(store, [row])
  return wireRequest(request!, caller(desk, call))
}

export const decideHumanRequest: RouteHandler<'decide'> = async (desk, call) => {
  const { decision, comment, fields, hash, insist } = call.body
  const { verdicts } = desk.engine
  const { request, receipt } = await verdicts.decide(call.caller.principal, call.params.id!, {
    decision,
    ...(comment === undefined ? {} : { comment }),
    ...(fields === undefined ? {} : { fields }),
    ...(hash === undefined ? {} : { hash }),
    ...(insist === undefined ? {} : { insist }),
  })
  return {
    request: wireRequest(request, caller(desk, call)),
    ...(receipt === undefined ? {} : { receipt: receipt as AnswerOf<'decide'>['receipt'] }),
  }
}

function caller({ engine }: Desk, call: Pick<Call, 'caller'>): Person | undefined {
  return personBehind(engine.team(), call.caller.principal)
}

function wireRequest(request: HumanRequest, person: Person | undefined): Wire {
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
