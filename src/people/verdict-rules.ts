import { AppError } from '../base/errors.ts'
import { formatId } from '../base/ids.ts'
import type { Person } from '../base/person.ts'
import { type Team, tooLong } from '../commands/team.ts'
import { readAnswer } from './answers.ts'
import { approvalOf, checkApprover, checkReviewed } from './approvals.ts'
import type { HumanDecision } from './human-request.ts'
import type { HumanRequestRow, HumanVerdict } from './people.ts'
import { decisionsOn, mayRoleDecide } from './request-view.ts'

/** Throws if the request or the person's role rules out this verdict. */
export function checkVerdict(row: HumanRequestRow, person: Person, verdict: HumanVerdict) {
  const { decision } = verdict
  checkRole(row, person)
  if (row.state !== 'open') throw alreadyDecided(row)
  const decisions = decisionsOn(row)
  if (!decisions.includes(decision)) throw otherwise(row, decisions)
  if (row.action !== null) checkApprover(person, approvalOf(row), row)
  // A change also approves the fields it keeps, so the person must have seen them, unless the last change was their own.
  const isOwn = decision === 'modify' && row.modified_by === person.name && verdict.hash === undefined
  if ((decision === 'approve' || decision === 'modify') && !isOwn) checkReviewed(row, decision, verdict.hash)
  if (decision !== 'answer') return
  const read = readAnswer(row, verdict.comment ?? '')
  if (!read.ok) throw read.error
}

/** In characters. */
const MAX_COMMENT = 10_000

/** Refuses texts that are too long; they are never cut (C20). An answer may be as long as a message. */
export function checkLength(team: Team, { decision, comment = '' }: HumanVerdict) {
  const large = decision === 'answer' ? tooLong(team, 'answer', comment) : undefined
  if (large !== undefined) throw large
  if (decision === 'answer' || comment.length <= MAX_COMMENT) return
  throw new AppError(
    'TOO_LARGE',
    `The comment is ${comment.length} characters; the limit is ${MAX_COMMENT}`,
    { hint: 'Nothing was decided. Shorten it, or put the details into a file and name its path.' },
  )
}

function checkRole(row: HumanRequestRow, person: Person) {
  if (mayRoleDecide(row, person)) return
  const { name, role } = person
  throw new AppError('FORBIDDEN', `${name} may not decide on ${formatId('req', row.id)}`, {
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
