import type { z } from 'zod'
import { AppError } from '../base/errors.ts'
import type { Person } from '../base/person.ts'
import { type CommandEntry, commandEntry, receiptOf } from '../commands/commands.ts'
import { personBehind } from '../commands/team.ts'
import { decideCommand, type HumanRequestSchema } from './api.ts'
import type { HumanRequest } from './human-request.ts'
import { maySay } from './verdict-rules.ts'
import type { Verdicts } from './verdicts.ts'

export const peopleCommands = (
  verdicts: () => Pick<Verdicts, 'whyNoAnswer' | 'decideOrRefuse'>,
): CommandEntry[] => [
  // Moderators decide on moderation, so the role is checked with the request.
  commandEntry(decideCommand, {
    forEveryRole: true,
    async perform({ team, speaker, commit }, { id, ...verdict }) {
      const person = personBehind(team, speaker.principal)!
      const doubtful = await verdicts().whyNoAnswer(person, id, verdict)
      return await commit(async ({ unsigned }) => {
        if (doubtful !== undefined) return doubtful
        const decided = await verdicts().decideOrRefuse(unsigned, person, id, verdict)
        if (decided instanceof AppError) return decided
        const { request, receipt } = decided
        return receiptOf(decideCommand, `${request.id} ${request.state}`, {
          request: wireRequest(request, person),
          ...(receipt === undefined ? {} : { receipt: receipt as WireReceipt }),
        })
      })
    },
  }),
]

type WireReceipt = z.output<typeof decideCommand.details>['receipt']

/** The decisions are those that this person may make. */
export function wireRequest(
  request: HumanRequest,
  person: Person | undefined,
): z.output<typeof HumanRequestSchema> {
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
