import { toHumanRequest } from '../../../engine/people.ts'
import type { HumanRequest } from '../../../model/human-request.ts'
import { readHumanRequests } from '../../../store/human-requests.ts'
import type { AnswerOf } from '../../contract.ts'
import type { RouteHandler } from '../call.ts'

type Wire = AnswerOf<'humanRequests'>['requests'][number]

const MOST = 1000

export const listHumanRequests: RouteHandler<'humanRequests'> = async ({ switchboard }, call) => {
  const { state, limit } = call.query
  const rows = await readHumanRequests(switchboard.store, state, call.isOperator ? limit : MOST)
  const own = call.isOperator ? rows : rows.filter((row) => row.asker === call.me).slice(-limit)
  return { requests: own.map((row) => wireRequest(toHumanRequest(row))) }
}

export const decideHumanRequest: RouteHandler<'decide'> = async ({ switchboard }, call) => {
  const { decision, comment } = call.body
  const { request, receipt } = await switchboard.verdicts.decide(call.caller.principal, call.params.id!, {
    decision,
    ...(comment === undefined ? {} : { comment }),
  })
  return {
    request: wireRequest(request),
    ...(receipt === undefined ? {} : { receipt: receipt as AnswerOf<'decide'>['receipt'] }),
  }
}

function wireRequest(request: HumanRequest): Wire {
  const { createdAt, expiresAt, decidedAt, decidedBy, ...same } = request
  return {
    ...same,
    created_at: createdAt,
    expires_at: expiresAt,
    ...(decidedAt === undefined ? {} : { decided_at: decidedAt }),
    ...(decidedBy === undefined ? {} : { decided_by: decidedBy }),
  }
}
