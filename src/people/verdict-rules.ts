import { AppError } from '../base/errors.ts'
import { formatId } from '../base/ids.ts'
import type { Person } from '../base/person.ts'
import { type Team, tooLong } from '../commands/team.ts'
import { readAnswer } from './answers.ts'
import { approvalOf, notAnApprover, notReviewed } from './approvals.ts'
import type { HumanDecision } from './human-request.ts'
import type { HumanRequestRow, HumanVerdict } from './people.ts'
import { decisionsOn, mayRoleDecide } from './request-view.ts'

/** Why the request or the person's role rules out this verdict. */
export function problemWithVerdict(
  team: Team,
  row: HumanRequestRow,
  person: Person,
  verdict: HumanVerdict,
): AppError | undefined {
  const { decision, hash, comment = '' } = verdict
  const large = tooLongFor(team, decision, comment)
  if (large !== undefined) return large
  if (!mayRoleDecide(row, person)) return wrongRole(row, person)
  if (row.state !== 'open') return alreadyDecided(row)
  const decisions = decisionsOn(row)
  if (!decisions.includes(decision)) return otherwise(row, decisions)
  const forbidden = row.action === null ? undefined : notAnApprover(person, approvalOf(row), row)
  if (forbidden !== undefined) return forbidden
  if (decision === 'answer') {
    const read = readAnswer(row, comment)
    return read.ok ? undefined : read.error
  }
  // A change also approves the fields it keeps, so the person must have seen them, unless the last change was their own.
  const isOwn = decision === 'modify' && row.modified_by === person.name && hash === undefined
  return decision === 'reject' || isOwn ? undefined : notReviewed(row, decision, hash)
}

/** In characters. */
const MAX_COMMENT = 10_000

/** Refuses texts that are too long; they are never cut (C20). An answer may be as long as a message. */
function tooLongFor(team: Team, decision: HumanDecision, comment: string): AppError | undefined {
  if (decision === 'answer') return tooLong(team, 'answer', comment)
  if (comment.length <= MAX_COMMENT) return undefined
  return new AppError(
    'TOO_LARGE',
    `The comment is ${comment.length} characters; the limit is ${MAX_COMMENT}`,
    { hint: 'Nothing was decided. Shorten it, or put the details into a file and name its path.' },
  )
}

function wrongRole(row: HumanRequestRow, { name, role }: Person): AppError {
  return new AppError('FORBIDDEN', `${name} may not decide on ${formatId('req', row.id)}`, {
    hint:
      role === 'moderator'
        ? `The role of ${name} in orc.yaml is moderator, which only decides on requests for moderation.`
        : `The role of ${name} in orc.yaml is ${role}. The operator can change that.`,
  })
}

const HOW: Record<HumanDecision, string> = {
  approve: '`orc approve ID`',
  reject: '`orc reject ID`',
  modify: '`orc modify ID FIELD=VALUE`',
  answer: '`orc answer ID TEXT`',
}

function otherwise(row: HumanRequestRow, decisions: readonly HumanDecision[]): AppError {
  const id = formatId('req', row.id)
  const wants = decisions.includes('answer')
    ? 'an answer'
    : decisions.length === 1
      ? 'only an acknowledgement'
      : 'approval or rejection'
  return new AppError('CONFLICT', `${id} needs ${wants}`, {
    hint: `Use ${decisions.map((decision) => HOW[decision]).join(' or ')}.`,
  })
}

function alreadyDecided(row: HumanRequestRow): AppError {
  const who = row.decided_by === null ? '' : ` by ${row.decided_by}`
  const when = row.decided_at === null ? '' : ` at ${time(row.decided_at)}`
  return new AppError('CONFLICT', `${formatId('req', row.id)} was already ${row.state}${who}${when}`, {
    hint: 'Only the first verdict counts. `orc inbox` lists open requests.',
  })
}

function time(at: number): string {
  return new Date(at).toISOString()
}
